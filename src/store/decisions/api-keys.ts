import { type ApiKey, isLive, KEY_SLOTS } from '../../domain/api-key.ts';
import type { AuditContext } from '../../domain/audit.ts';
import { quotaLimitText } from '../../domain/quota-limit.ts';
import { type Checked, legibleApiKey, readableOrNull, readableOrThrow, type Unchecked } from '../checked.ts';
import type { ApiKeyReplacement, ReplaceApiKeyOutcome, ReportUnreadable } from '../store.ts';
import type { Decision } from './decision.ts';

/** A key as it is stored. */
export interface StoredApiKey {
  readonly key: Checked<ApiKey>;
  readonly unchecked: Unchecked<ApiKey>;
  readonly slot: string;
}

/** Changed fields of a key. */
export type ApiKeyWrite = Partial<
  Pick<ApiKey, 'memberId' | 'secretSha256' | 'secretHint' | 'expiresAt' | 'revokedAt' | 'quotaLimit'>
>;

/** Returns a key, or else reports it and returns its readable parts. */
export const legible = ({ key, unchecked }: Omit<StoredApiKey, 'slot'>, report: ReportUnreadable): ApiKey | null =>
  readableOrNull(key, report) ?? legibleApiKey(unchecked);

type ApiKeyDecision<Outcome> = Decision<Outcome, ApiKeyWrite>;

/** @param takesSlot called if the key needs another slot; returns whether there is one */
export function decideKeyReplacement(
  found: StoredApiKey | null,
  { memberId, caller, secretSha256, secretHint, expiresAt, now }: ApiKeyReplacement,
  isApplied: boolean,
): ApiKeyDecision<ReplaceApiKeyOutcome> & { readonly needsSlot?: boolean } {
  if (!found) return { outcome: { kind: 'not-found' } };
  const key = readableOrThrow(found.key);
  const fields = { memberId, secretSha256, secretHint, expiresAt: expiresAt ?? key.expiresAt };
  const renewed = { ...key, ...fields };
  // The secret was valid, even if another call has replaced it since.
  if (isApplied) return { outcome: { kind: 'replaced', key: renewed } };
  if (key.revokedAt) return { outcome: { kind: 'revoked' } };
  if (!isLive(renewed, now)) return { outcome: { kind: 'expired' } };
  return {
    outcome: { kind: 'replaced', key: renewed },
    write: fields,
    // A live key keeps its slot; an expired one needs a new one. So does one that only seems live, because this clock is
    // behind that of the process that freed its slot.
    needsSlot: !(isLive(key, now) && KEY_SLOTS.includes(found.slot)),
    events: [{ action: 'api-key-replaced', memberId, caller, time: now }],
  };
}

export function decideKeyRevocation(
  found: StoredApiKey | null,
  { memberId, caller, now: revokedAt, report }: AuditContext & { readonly report: ReportUnreadable },
): ApiKeyDecision<ApiKey | null> {
  const key = found && legible(found, report);
  if (!found || key?.revokedAt) return { outcome: key };
  return {
    outcome: key && { ...key, revokedAt },
    write: { revokedAt },
    events: [{ action: 'api-key-revoked', memberId, caller, time: revokedAt }],
  };
}

export function decideKeyQuota(
  found: StoredApiKey | null,
  { quotaLimit, memberId, caller, now: time }: AuditContext & Pick<ApiKey, 'quotaLimit'>,
  isApplied: boolean,
): ApiKeyDecision<ApiKey | null> {
  const key = found && readableOrThrow(found.key);
  if (!key || isApplied) return { outcome: key };
  if (key.quotaLimit === quotaLimit) return { outcome: key, write: null };
  const [from, to] = [quotaLimitText(key.quotaLimit), quotaLimitText(quotaLimit)];
  return {
    outcome: { ...key, quotaLimit },
    write: { quotaLimit },
    events: [{ action: 'api-key-quota-changed', memberId, caller, time, from, to }],
  };
}
