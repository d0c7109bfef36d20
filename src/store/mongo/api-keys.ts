import { Binary, type Filter, UUID } from 'mongodb';
import { type ApiKey, isLive, KEY_SLOTS } from '../../domain/api-key.ts';
import { quotaLimitText } from '../../domain/quota-limit.ts';
import { type Checked, legibleApiKey, readableOrNull, readableOrThrow } from '../checked.ts';
import { readPage } from '../pages.ts';
import { type ApiKeyStore, type ReplaceApiKeyOutcome, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { applyOnce } from './apply-once.ts';
import { actor } from './audit.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  type ApiKeyDocument,
  apiKeyDocument,
  apiKeyIn,
  apiKeyOf,
  type HistoryEntry,
  memberOf,
  sourceOf,
  studioOf,
  WITHOUT_HISTORY,
} from './documents.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import type { StudioReads } from './studio-reads.ts';

/** Higher than the id of every key. */
const AFTER_ALL_IDS = 'g';

/** API keys and their slots, in MongoDB. */
export function mongoApiKeys(connection: Connection, studioReads: StudioReads, report: ReportUnreadable): ApiKeyStore {
  const { apiKeys, call, batched } = connection;
  const mutex = new KeyedMutex();
  const keysBySecret = batched<Uint8Array, ApiKey | null>(async ({ apiKeys }, secrets) => {
    const filter = { secretSha256: { $in: secrets.map((hash) => new Binary(hash)) } };
    const found = await apiKeys.find(filter, WITHOUT_HISTORY).toArray();
    const keys = found.flatMap((document) => readableOrNull(apiKeyOf(document), report) ?? []);
    const keysFound = new Map(keys.map((key) => [hexOf(key.secretSha256), key]));
    return secrets.map((hash) => keysFound.get(hexOf(hash)) ?? null);
  });

  return {
    createApiKey: keyCreator(connection, mutex),

    ...keyLister(connection, report),

    replaceApiKey: keyReplacer(connection, mutex),

    ...keyChanger(connection, report),

    recordApiKeyUse: ({ studioId, keyId, now, unlessSince }) =>
      call(async () => {
        const _id = new UUID(keyId);
        // Not retried: the next use is recorded anyway.
        await apiKeys.updateOne(
          { studioId, _id, lastUsedAt: { $not: { $gt: unlessSince, $lte: now } } },
          { $set: { lastUsedAt: now } },
        );
      }),

    findCredential: (secretSha256, sourceId) =>
      call(async (deadline) => {
        const key = await keysBySecret.submit(secretSha256, deadline);
        if (!key) return null;
        const { studioId, memberId } = key;
        const studio = await studioReads.submit({ studioId, memberId, sourceId }, deadline);
        if (!studio) return null;
        const member = readableOrNull(memberOf(studio, memberId), report);
        const source = sourceId === undefined ? null : readableOrNull(sourceOf(studio, sourceId), report);
        return { key, studio: studioOf(studio, report), issuerRole: member?.role ?? null, source };
      }),
  };
}

function keyLister(
  { apiKeys, call }: Connection,
  report: ReportUnreadable,
): Pick<ApiKeyStore, 'listLiveApiKeys' | 'listFormerApiKeys'> {
  const legible = legibleOf(report);
  return {
    listLiveApiKeys: (studioId) =>
      call(async () => {
        const found = await apiKeys.find({ studioId, slot: { $in: KEY_SLOTS } }, WITHOUT_HISTORY).toArray();
        const keys = found.flatMap((document) => legible(document) ?? []);
        return keys.sort((a, b) => (a.id < b.id ? 1 : -1));
      }),

    listFormerApiKeys: (studioId, before, limit) =>
      call(() => {
        // The slot of such a key is its id, so the index of slots has them in order.
        const read = (after: string | null, count: number) => {
          const slot = { $gte: '', $lt: after ?? AFTER_ALL_IDS, $nin: KEY_SLOTS };
          return apiKeys.find({ studioId, slot }, WITHOUT_HISTORY).sort({ slot: -1 }).limit(count).toArray();
        };
        const idOf = ({ slot }: ApiKeyDocument) => slot;
        const check = (document: ApiKeyDocument) => legible(document) ?? apiKeyOf(document);
        return readPage({ read, idOf, check }, { after: before, limit }, report);
      }),
  };
}

/** Returns a function that reads a key, or else reports it and returns its readable parts. */
const legibleOf = (report: ReportUnreadable) => (document: ApiKeyDocument) =>
  readableOrNull(apiKeyOf(document), report) ?? legibleApiKey(apiKeyIn(document));

const keyChanger = (
  { apiKeys, call }: Connection,
  report: ReportUnreadable,
): Pick<ApiKeyStore, 'revokeApiKey' | 'putApiKeyQuota'> => ({
  revokeApiKey: (studioId, keyId, { memberId, caller, now, requestId }) =>
    call((deadline) =>
      applyOnce<ApiKeyDocument, ApiKey | null>(apiKeys, deadline, {
        which: { studioId, _id: new UUID(keyId) },
        requestId,
        async decide(found) {
          if (!found) return { outcome: null };
          const legible = legibleOf(report);
          // An invalid time was not written by this service, so the key counts as not revoked.
          if (found.revokedAt instanceof Date) return { outcome: legible(found) };
          return {
            outcome: legible({ ...found, revokedAt: now }),
            where: { revokedAt: { $not: { $type: 'date' } } } as Filter<ApiKeyDocument>,
            update: { $set: { revokedAt: now, slot: keyId } },
            events: [{ action: 'api-key-revoked', memberId, caller, time: now }],
          };
        },
      }),
    ).then(readableOrThrow),

  putApiKeyQuota: (studioId, keyId, limit, { memberId, caller, now: time, requestId }) =>
    call((deadline) =>
      applyOnce<ApiKeyDocument, Checked<ApiKey> | null>(apiKeys, deadline, {
        which: { studioId, _id: new UUID(keyId) },
        requestId,
        async decide(found, isApplied) {
          const key = found && apiKeyOf(found);
          if (!key || key instanceof UnreadableRecord || isApplied) return { outcome: key };
          const before = key.quotaLimit;
          const where = { quotaLimit: before };
          if (before === limit) return { outcome: key, where };
          const [from, to] = [quotaLimitText(before), quotaLimitText(limit)];
          return {
            outcome: { ...key, quotaLimit: limit },
            where,
            update: { $set: { quotaLimit: limit } },
            events: [{ action: 'api-key-quota-changed', memberId, caller, time, from, to }],
          };
        },
      }),
    ).then(readableOrThrow),
});

const keyCreator =
  ({ apiKeys, call, indexes }: Connection, mutex: KeyedMutex): ApiKeyStore['createApiKey'] =>
  (key, now, caller) =>
    call((deadline) =>
      mutex.run([key.studioId], () =>
        untilKnown(deadline, async (attempt) => {
          // An earlier attempt may have been written and its response lost.
          if (
            attempt > 0 &&
            (await apiKeys.findOne({ studioId: key.studioId, _id: new UUID(key.id) }, WITHOUT_HISTORY))
          )
            return true;
          await indexes.expectValid('apiKeys');
          const slot = await freeSlot(apiKeys, key.studioId, now, deadline);
          if (slot === undefined) return false;
          deadline.throwIfAborted();
          const { memberId } = key;
          const history: HistoryEntry[] = [{ action: 'api-key-created', ...actor({ memberId, caller }), time: now }];
          await apiKeys.insertOne({ ...apiKeyDocument(key, slot), history });
          return true;
        }),
      ),
    );

const keyReplacer =
  ({ apiKeys, call, indexes }: Connection, mutex: KeyedMutex): ApiKeyStore['replaceApiKey'] =>
  ({ studioId, keyId, memberId, caller, secretSha256, secretHint, expiresAt, now }) =>
    call((deadline) =>
      mutex.run([studioId], () =>
        applyOnce<ApiKeyDocument, Checked<ReplaceApiKeyOutcome>>(apiKeys, deadline, {
          which: { studioId, _id: new UUID(keyId) },
          // A repeated request would need the secret, which is not stored.
          requestId: undefined,
          async decide(found, isApplied) {
            if (!found) return { outcome: { kind: 'not-found' } };
            const key = apiKeyOf(found);
            if (key instanceof UnreadableRecord) return { outcome: key };
            const renewed = { ...key, memberId, secretSha256, secretHint, expiresAt: expiresAt ?? key.expiresAt };
            // The secret was valid, even if another call has replaced it since.
            if (isApplied) return { outcome: { kind: 'replaced', key: renewed } };
            if (key.revokedAt) return { outcome: { kind: 'revoked' } };
            if (!isLive(renewed, now)) return { outcome: { kind: 'expired' } };
            await indexes.expectValid('apiKeys');
            // A live key keeps its slot; an expired one needs a new one. So does one that only seems live, because this
            // clock is behind that of the process that freed its slot.
            const keepsSlot = isLive(key, now) && KEY_SLOTS.includes(found.slot);
            const slot = keepsSlot ? found.slot : await freeSlot(apiKeys, studioId, now, deadline);
            if (slot === undefined) return { outcome: { kind: 'limit-reached' } };
            const secret = { memberId, secretSha256: new Binary(secretSha256), secretHint };
            return {
              outcome: { kind: 'replaced', key: renewed },
              where: { revokedAt: null, secretSha256: found.secretSha256 },
              update: { $set: { ...secret, expiresAt: renewed.expiresAt, slot } },
              record: { kind: 'API key', studioId, id: keyId },
              events: [{ action: 'api-key-replaced', memberId, caller, time: now }],
            };
          },
        }),
      ),
    ).then(readableOrThrow);

/** Returns a free slot, or undefined. A random one, so that concurrent calls rarely conflict. */
async function freeSlot(
  apiKeys: Connection['apiKeys'],
  studioId: string,
  now: Date,
  deadline: AbortSignal,
): Promise<string | undefined> {
  const holders = await apiKeys.find({ studioId, slot: { $in: KEY_SLOTS } }, WITHOUT_HISTORY).toArray();
  const live = holders.filter((holder) => {
    const key = apiKeyOf(holder);
    // An unreadable key may be live, unless its expiry can be read.
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

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
