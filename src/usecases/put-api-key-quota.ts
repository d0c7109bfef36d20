import { crmIdFault, uuidFault } from '../../common/rules/field-rules.ts';
import type { ApiKey } from '../domain/api-key.ts';
import { type Requester, requestIdentity } from '../domain/audit.ts';
import type { Clock } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { quotaLimitFault } from '../domain/studio.ts';
import type { ApiKeyStore, DirectoryStore } from '../store/store.ts';
import { existingStudio } from './keep-directory.ts';

/** A request to set a key's quota, not yet checked. */
export interface PutApiKeyQuotaCommand extends Requester {
  readonly studioId: string;
  readonly keyId: string;
  /** Requests per window; undefined: the gateways' default. */
  readonly quotaLimit: number | undefined;
}

/**
 * Sets or removes a key's own quota. The CRM decides quotas, not the members who manage a studio's keys.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, KEY_NOT_FOUND
 */
export async function putApiKeyQuota(
  {
    store,
    clock,
  }: { readonly store: Pick<ApiKeyStore & DirectoryStore, 'putApiKeyQuota' | 'findStudio'>; readonly clock: Clock },
  { studioId, keyId, quotaLimit, memberId, caller, requestId }: PutApiKeyQuotaCommand,
): Promise<ApiKey> {
  const faults = new Faults();
  faults.note('apiKeyId', uuidFault(keyId));
  if (quotaLimit !== undefined) faults.note('quotaLimit', quotaLimitFault(quotaLimit));
  if (memberId !== undefined) faults.note('memberId', crmIdFault(memberId));
  if (requestId !== undefined) faults.note('requestId', uuidFault(requestId));
  await existingStudio(store, studioId, faults);
  const id = keyId.toLowerCase();
  const identity = requestIdentity(requestId, 'put API key quota', studioId, id);
  const by = { memberId: memberId ?? null, caller, now: clock(), requestId: identity };
  const key = await store.putApiKeyQuota(studioId, id, quotaLimit ?? null, by);
  if (!key) throw new Refusal('KEY_NOT_FOUND', 'There is no such key.');
  return key;
}
