import { type ApiKey, isLive, KEY_SLOTS } from '../../domain/api-key.ts';
import { actorIn } from '../../domain/audit.ts';
import { numberText } from '../../domain/studio.ts';
import { type Checked, readableOrThrow } from '../checked.ts';
import type { ApiKeyCommand, ApiKeyReplacement, ReplaceApiKeyOutcome } from '../port/api-keys.ts';
import type { Decision } from './decision.ts';

export interface StoredApiKey {
  readonly key: Checked<ApiKey>;
  /** Returns its readable parts. */
  readonly readable: () => ApiKey | null;
  readonly slot: string;
}

export interface ApiKeyWrite extends Partial<ApiKey> {
  /** `free`: a free slot. `own`: the key's own id, because it is revoked. Absent: the slot stays. */
  readonly slot?: 'free' | 'own';
}

export function decideKeyReplacement(
  found: StoredApiKey | null,
  { memberId, secretSha256, secretHint, expiresAt, now, ...by }: ApiKeyReplacement,
  isApplied: boolean,
): Decision<ReplaceApiKeyOutcome, ApiKeyWrite> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const key = readableOrThrow(found.key);
  const fields = { memberId, secretSha256, secretHint, expiresAt: expiresAt ?? key.expiresAt };
  const renewed = { ...key, ...fields };
  // The secret was valid, even if another call has replaced it since.
  if (isApplied) return { outcome: { kind: 'replaced', key: renewed } };
  if (key.revokedAt) return { outcome: { kind: 'revoked' } };
  if (!isLive(renewed, now)) return { outcome: { kind: 'expired' } };
  // A live key keeps its slot; an expired one needs a new one. A key whose slot another process has freed needs a new
  // one, too: it only seems live if this clock is behind.
  const keepsSlot = isLive(key, now) && KEY_SLOTS.includes(found.slot);
  return {
    outcome: { kind: 'replaced', key: renewed },
    write: { ...fields, ...(!keepsSlot && { slot: 'free' }) },
    events: [{ action: 'api-key-replaced', ...actorIn({ ...by, memberId }), time: now }],
  };
}

export function decideKeyRevocation(
  found: StoredApiKey | null,
  { now: revokedAt, ...by }: ApiKeyCommand,
): Decision<ApiKey | null, ApiKeyWrite> {
  const key = found?.readable() ?? null;
  if (!found || key?.revokedAt) return { outcome: key };
  return {
    outcome: key && { ...key, revokedAt },
    write: { revokedAt, slot: 'own' },
    events: [{ action: 'api-key-revoked', ...actorIn(by), time: revokedAt }],
  };
}

export function decideKeyQuota(
  found: StoredApiKey | null,
  { quotaLimit, now: time, ...by }: ApiKeyCommand & { readonly quotaLimit: number | null },
  isApplied: boolean,
): Decision<ApiKey | null, ApiKeyWrite> {
  const key = found && readableOrThrow(found.key);
  if (!key || isApplied) return { outcome: key };
  if (key.quotaLimit === quotaLimit) return { outcome: key, write: null };
  const [from, to] = [numberText(key.quotaLimit), numberText(quotaLimit)];
  return {
    outcome: { ...key, quotaLimit },
    write: { quotaLimit },
    events: [{ action: 'api-key-quota-changed', ...actorIn(by), time, from, to }],
  };
}
