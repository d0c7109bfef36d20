import { type ApiKey, KEY_SLOTS } from '../../domain/api-key.ts';
import { checked, checkedInParts, readableOrNull, type Unchecked } from '../checked.ts';
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
import { API_KEY } from '../records.ts';
import type { Connection } from './connection.ts';
import { API_KEYS } from './record-rows.ts';

const SLOTS = KEY_SLOTS.map((slot) => `'${slot}'`).join();

const AFTER_ALL_IDS = '\u{10ffff}';

export function sqliteApiKeys(connection: Connection): ApiKeyStore {
  const { prepare, commits, plainCommits, recordEvent, report } = connection;
  const { takeSlot, change } = keyWriter(connection);
  const selectLive = API_KEYS.query(prepare, `WHERE studio_id = ? AND slot IN (${SLOTS}) ORDER BY id DESC`);
  const selectFormer = API_KEYS.query(
    prepare,
    `WHERE studio_id = ? AND id < ? AND slot NOT IN (${SLOTS}) ORDER BY id DESC LIMIT ? + 0`,
  );
  const insert = prepare(`INSERT ${API_KEYS.into('slot')}`);
  const readable = (key: Unchecked<ApiKey>) => checkedInParts(API_KEY, key, report);
  const updateUse = prepare(`
    UPDATE api_keys SET last_used_at = :now
    WHERE studio_id = :studioId AND id = :id
      AND (coalesce(last_used_at, 0) <= :unlessSince OR last_used_at > :now)`);

  return {
    createApiKey: (key, now, by) =>
      commits.write(() => {
        const { studioId, id, memberId } = key;
        const slot = takeSlot(studioId, now);
        if (slot === undefined) return false;
        insert.run({ ...API_KEYS.written(key).values, slot });
        recordEvent({ studioId, apiKeyId: id, ...eventOfAct({ ...by, memberId, now }, { action: 'api-key-created' }) });
        return true;
      }),

    async listLiveApiKeys(studioId) {
      return selectLive.all(studioId).flatMap((key) => readableOrNull(readable(key), report) ?? []);
    },

    async listFormerApiKeys(studioId, before, limit) {
      const read = (after: string | null, count: number) => selectFormer.all(studioId, after ?? AFTER_ALL_IDS, count);
      return readPage({ read, toId: ({ id }) => id as string, check: readable }, { after: before, limit }, report);
    },

    replaceApiKey: change(decideKeyReplacement),

    revokeApiKey: (studioId, keyId, by) => change(decideKeyRevocation)({ studioId, keyId, ...by }),

    putApiKeyQuota: (studioId, keyId, quotaLimit, by) => change(decideKeyQuota)({ studioId, keyId, quotaLimit, ...by }),

    recordApiKeyUse: ({ studioId, keyId, now, unlessSince }) =>
      plainCommits.write(() => {
        updateUse.run({ studioId, id: keyId, now: now.getTime(), unlessSince: unlessSince.getTime() });
      }),

    findCredential: connection.findCredential,
  };
}

function keyWriter({ prepare, applyOnce, report }: Connection) {
  const selectById = API_KEYS.query(prepare, 'WHERE studio_id = ? AND id = ?');
  const selectSlot = prepare<[slot: string]>('SELECT slot FROM api_keys WHERE studio_id = ? AND id = ?');
  const selectSlots = prepare(`SELECT slot FROM api_keys WHERE studio_id = ? AND slot IN (${SLOTS})`);
  const freeExpiredSlots = prepare(
    `UPDATE api_keys SET slot = id WHERE studio_id = ? AND slot IN (${SLOTS}) AND expires_at <= ?`,
  );

  /** Frees the slots of expired keys, and returns a free slot; undefined: live keys hold all. Must be called within a write. */
  function takeSlot(studioId: string, now: Date): string | undefined {
    freeExpiredSlots.run(studioId, now.getTime());
    const taken = new Set(selectSlots.all(studioId).map(([slot]) => slot));
    return KEY_SLOTS.find((slot) => !taken.has(slot));
  }

  function read({ studioId, keyId }: ApiKeyCommand): StoredApiKey | null {
    const stored = selectById.get(studioId, keyId);
    if (!stored) return null;
    const readable = () => readableOrNull(checkedInParts(API_KEY, stored, report), report);
    return { key: checked(API_KEY, stored), readable, slot: selectSlot.get(studioId, keyId)?.[0] ?? keyId };
  }

  function store({ studioId, keyId, now }: ApiKeyCommand, { slot: change, ...fields }: ApiKeyWrite) {
    const slot = change === 'free' ? takeSlot(studioId, now) : change && keyId;
    if (change && slot === undefined) return { kind: 'limit-reached' };
    const { set, values } = API_KEYS.written(fields);
    const sql = `UPDATE api_keys SET ${[...set, 'slot = coalesce(:slot, slot)']} WHERE studio_id = :studioId AND id = :keyId`;
    prepare(sql).run({ ...values, slot: slot ?? null, studioId, keyId });
    return undefined;
  }

  const change =
    <Command extends ApiKeyCommand, Outcome>(decide: Decide<StoredApiKey, Command, Outcome, ApiKeyWrite>) =>
    (command: Command) =>
      applyOnce<StoredApiKey | null, ApiKeyWrite, Outcome>({
        subject: { studioId: command.studioId, apiKeyId: command.keyId },
        requestId: command.requestId,
        read: () => read(command),
        decide: (found, isApplied) => decide(found, command, isApplied),
        write: (write) => store(command, write) as Outcome | undefined,
      });

  return { takeSlot, change };
}
