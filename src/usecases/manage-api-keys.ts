import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { crmIdFault, nameFault, uuidFault } from '../../common/rules/field-rules.ts';
import { hashKeySecret, newKeySecret, toHint } from '../../common/rules/key-secret.ts';
import { DAY_MS } from '../../common/units.ts';
import {
  type ApiKey,
  type ApiKeyScope,
  expiryFault,
  isInUse,
  MAX_LIVE_KEYS,
  mayManageKeys,
} from '../domain/api-key.ts';
import { type CallingProgram, type Requester, requestIdentity } from '../domain/audit.ts';
import { idBeforePage } from '../domain/cursor.ts';
import { newestFirst, timeOfId } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { quotaLimitFault } from '../domain/studio.ts';
import type { Changing, Dependencies, Reading } from './dependencies.ts';
import { noteRequester, type PageQuery, requestedBy, startOfPage, tokenAfter } from './requests.ts';
import { everyStudio, existingStudio } from './studios.ts';

/** The bounds of a page of keys; the default is the maximum. The first page has room for more than the live keys. */
const MAX_KEYS_PER_PAGE = 1000;
const MIN_KEYS_PER_PAGE = 5 * MAX_LIVE_KEYS;

/** The unchecked manager of a studio's keys: a member, or the operator of the service, who may only list and revoke them. */
export interface KeyManagerOrOperator extends CallingProgram {
  readonly studioId: string;
  /** Null: the operator. */
  readonly memberId: string | null;
}

/** The unchecked member who manages a studio's keys. */
export interface KeyManager extends KeyManagerOrOperator {
  readonly memberId: string;
}

/** A key with its secret, which is returned only when it is issued. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
}

export interface CreateApiKeyCommand extends KeyManager {
  readonly name: string;
  /** Undefined: an unknown scope. */
  readonly scopes: readonly (ApiKeyScope | undefined)[];
  readonly expiresAt: Date | undefined;
}

/**
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, STUDIO_ENDED, MEMBER_FORBIDDEN, KEY_LIMIT_REACHED
 *
 * @rule 2.6.creation 5.6
 */
export async function createApiKey(deps: Dependencies, command: CreateApiKeyCommand): Promise<IssuedKey> {
  const { store, clock, newId } = deps;
  const { studioId, memberId, name, expiresAt } = command;
  const now = clock();
  const scopes = [...new Set(command.scopes)].sort();
  const faults = managerFaults(command);
  faults.note('name', nameFault(name));
  if (scopes.length === 0) faults.note('scopes', 'must name at least one scope');
  if (scopes.includes(undefined)) faults.note('scopes', 'must name known scopes only');
  faults.note('expireTime', expiresAt ? expiryFault(expiresAt, now) : 'must be given');
  faults.refuseIfAny();
  await authorise(store, command, 'issues');

  const secret = newKeySecret();
  const id = newId();
  const key: ApiKey = {
    id,
    studioId,
    memberId,
    name,
    scopes: scopes as ApiKeyScope[],
    createdAt: timeOfId(id),
    expiresAt: expiresAt as Date,
    revokedAt: null,
    secretSha256: hashKeySecret(secret),
    secretHint: toHint(secret),
    lastUsedAt: null,
    quotaLimit: null,
  };
  if (!(await store.createApiKey(key, now, command))) throw new Refusal('KEY_LIMIT_REACHED');
  return { key, secret };
}

export type ListApiKeysQuery = KeyManagerOrOperator & Partial<PageQuery>;

/**
 * Lists the keys of a studio, highest id first. The first page has all live keys, regardless of age.
 *
 * @returns one page; the token is empty on the last one
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, MEMBER_FORBIDDEN
 */
export async function listApiKeys(
  { store }: Reading,
  { pageSize = 0, pageToken = '', ...manager }: ListApiKeysQuery,
): Promise<{ readonly apiKeys: readonly ApiKey[]; readonly nextPageToken: string }> {
  const { studioId } = manager;
  const faults = managerFaults(manager);
  const before = startOfPage(faults, { pageSize, pageToken }, (token) => idBeforePage('apiKeys', studioId, token));
  faults.refuseIfAny();
  await authorise(store, manager);
  const size = Math.min(Math.max(pageSize || MAX_KEYS_PER_PAGE, MIN_KEYS_PER_PAGE), MAX_KEYS_PER_PAGE);
  const live = before === null ? await store.listLiveApiKeys(studioId) : [];
  const { records, next } = await store.listFormerApiKeys(studioId, before, size - live.length);
  // A key that was revoked between the two reads is in both results.
  const unique = new Map([...live, ...records].map((key) => [key.id, key])).values();
  return {
    apiKeys: [...unique].sort(newestFirst),
    nextPageToken: tokenAfter('apiKeys', studioId, next),
  };
}

/** Returns the valid keys of all studios that expire before a time, soonest first. Ended studios have none. */
export async function expiringApiKeys(deps: Changing, before: Date): Promise<ApiKey[]> {
  const now = deps.clock();
  const keys: ApiKey[] = [];
  for await (const { id, status } of everyStudio(deps)) {
    if (status === 'ended') continue;
    // Gives way to requests, because SQLite reads thousands of studios without a pause.
    await yieldToEventLoop();
    const live = (await deps.store.listLiveApiKeys(id)).filter(({ revokedAt }) => revokedAt === null);
    keys.push(...live.filter(({ expiresAt }) => now < expiresAt && expiresAt < before));
  }
  return keys.sort((a, b) => a.expiresAt.getTime() - b.expiresAt.getTime());
}

/** The periods in which expiring keys are counted; days. */
export const EXPIRING_WITHIN_DAYS = [7, 30] as const;

/** Counts the keys in use of all studios that expire within each of EXPIRING_WITHIN_DAYS. */
export async function countExpiringKeys(deps: Changing): Promise<ReadonlyMap<number, number>> {
  const now = deps.clock();
  const within = (days: number) => new Date(now.getTime() + days * DAY_MS);
  const keys = await expiringApiKeys(deps, within(Math.max(...EXPIRING_WITHIN_DAYS)));
  const inUse = keys.filter((key) => isInUse(key, now));
  const countExpiring = (days: number) => inUse.filter(({ expiresAt }) => expiresAt < within(days)).length;
  return new Map(EXPIRING_WITHIN_DAYS.map((days) => [days, countExpiring(days)]));
}

export interface ReplaceApiKeyCommand extends KeyManager {
  readonly keyId: string;
  /** Undefined: unchanged. */
  readonly expiresAt: Date | undefined;
}

/**
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, STUDIO_ENDED, MEMBER_FORBIDDEN, KEY_NOT_FOUND, KEY_REVOKED, KEY_EXPIRED,
 * KEY_LIMIT_REACHED
 * @rule 3.2.replaced 3.2.renewed 5.7
 */
export async function replaceApiKey({ store, clock }: Changing, command: ReplaceApiKeyCommand): Promise<IssuedKey> {
  const { studioId, memberId, expiresAt } = command;
  const now = clock();
  const faults = managerFaults(command);
  faults.note('apiKeyId', uuidFault(command.keyId));
  if (expiresAt) faults.note('expireTime', expiryFault(expiresAt, now));
  faults.refuseIfAny();
  await authorise(store, command, 'issues');

  const secret = newKeySecret();
  const outcome = await store.replaceApiKey({
    studioId,
    keyId: command.keyId.toLowerCase(),
    ...requestedBy(command, clock),
    memberId,
    secretSha256: hashKeySecret(secret),
    secretHint: toHint(secret),
    expiresAt: expiresAt ?? null,
    now,
  });
  if (outcome.kind !== 'replaced') throw new Refusal(NOT_REPLACED[outcome.kind]);
  return { key: outcome.key, secret };
}

const NOT_REPLACED = {
  'not-found': 'KEY_NOT_FOUND',
  revoked: 'KEY_REVOKED',
  expired: 'KEY_EXPIRED',
  'limit-reached': 'KEY_LIMIT_REACHED',
} as const;

/** @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, MEMBER_FORBIDDEN, KEY_NOT_FOUND @rule 3.2.revoked 5.7 */
export async function revokeApiKey(
  { store, clock }: Changing,
  command: KeyManagerOrOperator & { readonly keyId: string },
): Promise<ApiKey> {
  const faults = managerFaults(command);
  faults.note('apiKeyId', uuidFault(command.keyId));
  faults.refuseIfAny();
  await authorise(store, command);
  const key = await store.revokeApiKey(command.studioId, command.keyId.toLowerCase(), requestedBy(command, clock));
  if (!key) throw new Refusal('KEY_NOT_FOUND');
  return key;
}

function managerFaults({ studioId, memberId }: KeyManagerOrOperator): Faults {
  const faults = new Faults();
  faults.note('studioId', crmIdFault(studioId));
  if (memberId !== null) faults.note('memberId', crmIdFault(memberId));
  return faults;
}

// @rule 5.4
async function authorise(
  store: Reading['store'],
  { studioId, memberId }: KeyManagerOrOperator,
  issues?: 'issues',
): Promise<void> {
  const studio = await store.findStudio(studioId);
  if (!studio) throw new Refusal('STUDIO_NOT_FOUND');
  if (issues && studio.status === 'ended') throw new Refusal('STUDIO_ENDED');
  if (memberId === null) return;
  const member = await store.findMember(studioId, memberId);
  if (!mayManageKeys(member?.role ?? null)) throw new Refusal('MEMBER_FORBIDDEN');
}

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
  { store, clock }: Changing,
  { studioId, keyId, quotaLimit, requestId, ...requester }: PutApiKeyQuotaCommand,
): Promise<ApiKey> {
  const faults = new Faults();
  faults.note('apiKeyId', uuidFault(keyId));
  if (quotaLimit !== undefined) faults.note('quotaLimit', quotaLimitFault(quotaLimit));
  noteRequester(faults, { memberId: requester.memberId, requestId });
  await existingStudio(store, studioId, faults);
  const id = keyId.toLowerCase();
  const identity = requestIdentity(requestId, 'put API key quota', studioId, id);
  const by = requestedBy(requester, clock, identity);
  const key = await store.putApiKeyQuota(studioId, id, quotaLimit ?? null, by);
  if (!key) throw new Refusal('KEY_NOT_FOUND');
  return key;
}
