import { Binary, type Filter, UUID } from 'mongodb';
import { type ApiKey, isLive, KEY_SLOTS } from '../../domain/api-key.ts';
import { newestFirst } from '../../domain/new-id.ts';
import { type Checked, checkedInParts, readableOrNull } from '../checked.ts';
import {
  type ApiKeyWrite,
  decideKeyQuota,
  decideKeyReplacement,
  decideKeyRevocation,
  type StoredApiKey,
} from '../decisions/api-keys.ts';
import { type Decide, eventOfAct } from '../decisions/decision.ts';
import { readPage } from '../pages.ts';
import type { ApiKeyCommand, ApiKeyStore } from '../port/api-keys.ts';
import { type ReportUnreadable, UnreadableRecord } from '../port/faults.ts';
import { API_KEY, checkedStudio, STUDIO } from '../records.ts';
import { changer } from './apply-once.ts';
import { requestBatcher, type StudioReads } from './collections.ts';
import type { Connection } from './connection.ts';
import {
  AFTER_ALL_SLOTS,
  type ApiKeyDocument,
  apiKeyDocument,
  fieldsIn,
  readApiKey,
  readMember,
  readSource,
  storedFields,
} from './documents.ts';
import { WITHOUT_HISTORY } from './queries.ts';

export function mongoApiKeys(connection: Connection, studioReads: StudioReads): ApiKeyStore {
  const { apiKeys, call, report } = connection;
  const { write, createApiKey } = keyWriter(connection);
  const readable = (document: ApiKeyDocument) => readableKey(document, report);

  return {
    createApiKey,

    listLiveApiKeys: (studioId) =>
      call(async () => {
        const keys = (await slotHolders(apiKeys, studioId)).flatMap(
          (document) => readableOrNull(readable(document), report) ?? [],
        );
        return keys.sort(newestFirst);
      }),

    listFormerApiKeys: (studioId, before, limit) =>
      call(() => {
        // The slot of such a key is its id, so the index of slots has them in order.
        const read = (after: string | null, count: number) => {
          const slot = { $gte: '', $lt: after ?? AFTER_ALL_SLOTS, $nin: KEY_SLOTS };
          const options = { ...WITHOUT_HISTORY, sort: { slot: -1 }, limit: count } as const;
          return apiKeys.find({ studioId, slot }, options).toArray();
        };
        return readPage({ read, toId: ({ slot }) => slot, check: readable }, { after: before, limit }, report);
      }),

    replaceApiKey: write(decideKeyReplacement),

    revokeApiKey: (studioId, keyId, by) => write(decideKeyRevocation)({ studioId, keyId, ...by }),

    putApiKeyQuota: (studioId, keyId, quotaLimit, by) => write(decideKeyQuota)({ studioId, keyId, quotaLimit, ...by }),

    recordApiKeyUse: ({ studioId, keyId, now, unlessSince }) =>
      call(async () => {
        const isDue = { lastUsedAt: { $not: { $gt: unlessSince, $lte: now } } };
        // Not retried, because the next use is recorded anyway.
        await apiKeys.updateOne({ studioId, _id: new UUID(keyId), ...isDue }, { $set: { lastUsedAt: now } });
      }),

    findCredential: credentialFinder(connection, studioReads),
  };
}

function credentialFinder(
  { apiKeys, call, report }: Connection,
  studioReads: StudioReads,
): ApiKeyStore['findCredential'] {
  const keysBySecret = requestBatcher<Uint8Array, ApiKey | null>(async (secrets) => {
    const filter = { secretSha256: { $in: secrets.map((hash) => new Binary(hash)) } };
    const found = await apiKeys.find(filter, WITHOUT_HISTORY).toArray();
    const keys = found.flatMap((document) => readableOrNull(readApiKey(document), report) ?? []);
    const keysFound = new Map(keys.map((key) => [toHex(key.secretSha256), key]));
    return secrets.map((hash) => keysFound.get(toHex(hash)) ?? null);
  });
  return (secretSha256, sourceId) =>
    call(async (deadline) => {
      const key = await keysBySecret.submit(secretSha256, deadline);
      if (!key) return null;
      const { studioId, memberId } = key;
      const paths = [`members.${memberId}`, ...(sourceId === undefined ? [] : [`sources.${sourceId}`])];
      const studio = await studioReads.submit({ studioId, paths }, deadline);
      if (!studio) return null;
      const member = readableOrNull(readMember(studio, memberId), report);
      const source = sourceId === undefined ? null : readableOrNull(readSource(studio, sourceId), report);
      return { key, studio: checkedStudio(fieldsIn(STUDIO, studio), report), issuerRole: member?.role ?? null, source };
    });
}

const readableKey = (document: ApiKeyDocument, report: ReportUnreadable) =>
  checkedInParts(API_KEY, fieldsIn(API_KEY, document), report);

/** Returns a condition that a key is unchanged since it was read. An unreadable key can only be revoked, so it needs none. */
const asRead = (key: Checked<ApiKey>): Filter<ApiKeyDocument> =>
  key instanceof UnreadableRecord
    ? {}
    : { revokedAt: key.revokedAt, quotaLimit: key.quotaLimit, secretSha256: new Binary(key.secretSha256) };

/** Returns functions that create keys, and carry out decisions about them. */
function keyWriter(connection: Connection) {
  const { apiKeys, indexes, report } = connection;
  const change = changer(connection, apiKeys);
  const storedApiKey = (found: ApiKeyDocument): StoredApiKey => ({
    key: readApiKey(found),
    readable: () => readableOrNull(readableKey(found, report), report),
    slot: found.slot,
  });
  const write =
    <Command extends ApiKeyCommand, Outcome>(decide: Decide<StoredApiKey, Command, Outcome, ApiKeyWrite>) =>
    (command: Command): Promise<Outcome> => {
      const { studioId, keyId, requestId, now } = command;
      return change<Outcome>({
        which: { studioId, _id: new UUID(keyId) },
        mutexKey: studioId,
        requestId,
        async decide(found, isApplied, deadline) {
          const stored = found && storedApiKey(found);
          const decision = decide(stored, command, isApplied);
          if (!stored || isApplied || !('write' in decision)) return { outcome: decision.outcome };
          const { outcome, write, events } = decision;
          const where = asRead(stored.key);
          if (!write) return { outcome, where };
          const { slot, ...fields } = write;
          const { secretSha256 } = fields;
          if (secretSha256) await indexes.expectValid('apiKeys');
          const placed = slot === 'free' ? await freeSlot(apiKeys, studioId, now, deadline) : slot && keyId;
          if (slot && placed === undefined) return { outcome: { kind: 'limit-reached' } as Outcome };
          return {
            outcome,
            where,
            update: { $set: { ...storedFields(API_KEY, fields), ...(placed && { slot: placed }) } },
            events,
            record: secretSha256 && { kind: 'API key', studioId, id: keyId },
          };
        },
      });
    };
  const createApiKey: ApiKeyStore['createApiKey'] = (key, now, by) => {
    const { studioId, id, memberId } = key;
    return change<boolean>({
      which: { studioId, _id: new UUID(id) },
      isNew: true,
      mutexKey: studioId,
      async decide(found, _, deadline) {
        // An earlier attempt was written, but its response was lost.
        if (found) return { outcome: true };
        await indexes.expectValid('apiKeys');
        const slot = await freeSlot(apiKeys, studioId, now, deadline);
        if (slot === undefined) return { outcome: false };
        const events = [eventOfAct({ ...by, memberId, now }, { action: 'api-key-created' })];
        return { outcome: true, insert: apiKeyDocument(key, slot), events };
      },
    });
  };
  return { write, createApiKey };
}

const slotHolders = (apiKeys: Connection['apiKeys'], studioId: string) =>
  apiKeys.find({ studioId, slot: { $in: KEY_SLOTS } }, WITHOUT_HISTORY).toArray();

/** Returns a free slot; undefined: there is none. It is random, so that concurrent calls rarely conflict. */
async function freeSlot(
  apiKeys: Connection['apiKeys'],
  studioId: string,
  now: Date,
  deadline: AbortSignal,
): Promise<string | undefined> {
  const holders = await slotHolders(apiKeys, studioId);
  const live = holders.filter((holder) => {
    const key = readApiKey(holder);
    // An unreadable key may be live, unless its expiry is readable.
    return key instanceof UnreadableRecord ? !isPast(holder.expiresAt, now) : isLive(key, now);
  });
  for (const expired of holders.filter((holder) => !live.includes(holder))) {
    const { _id, expiresAt } = expired;
    deadline.throwIfAborted();
    // Only if it is still the expired key that was read.
    await apiKeys.updateOne({ studioId, _id, expiresAt }, { $set: { slot: _id.toString() } });
  }
  const free = KEY_SLOTS.filter((slot) => !live.some((holder) => holder.slot === slot));
  return free[Math.floor(Math.random() * free.length)];
}

const isPast = (time: unknown, now: Date): boolean => time instanceof Date && time <= now;

const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
