import type { SQLInputValue } from 'node:sqlite';
import { KEY_SLOTS } from '../../domain/api-key.ts';
import { readablePartsOfKey } from '../checked.ts';
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
import type { Connection } from './connection.ts';
import { API_KEY_COLUMNS, apiKeyIn, apiKeyOf, type Row } from './rows.ts';

const SLOTS = KEY_SLOTS.map((slot) => `'${slot}'`).join();

const AFTER_ALL_IDS = '\u{10ffff}';

export function sqliteApiKeys(connection: Connection): ApiKeyStore {
  const { database, commits, plainCommits, recordEvent, report } = connection;
  const { takeSlot, change } = keyWriter(connection);
  const selectLive = database.prepare(`
    SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE studio_id = ? AND slot IN (${SLOTS}) ORDER BY id DESC`);
  const selectFormer = database.prepare(`
    SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE studio_id = ? AND id < ? AND slot NOT IN (${SLOTS})
    ORDER BY id DESC LIMIT ? + 0`);
  const insert = database.prepare(`
    INSERT INTO api_keys (
      studio_id, id, member_id, name, scopes, created_at, expires_at, revoked_at, secret_sha256, secret_hint, slot,
      quota_limit
    ) VALUES (
      :studioId, :id, :memberId, :name, :scopes, :createdAt, :expiresAt, NULL, :secretSha256, :secretHint, :slot,
      :quotaLimit
    )`);
  const updateUse = database.prepare(`
    UPDATE api_keys SET last_used_at = :now
    WHERE studio_id = :studioId AND id = :id
      AND (coalesce(last_used_at, 0) <= :unlessSince OR last_used_at > :now)`);

  return {
    createApiKey: (key, now, by) =>
      commits.write(() => {
        const { studioId, id, memberId, scopes, createdAt, expiresAt, revokedAt: _, lastUsedAt: __, ...texts } = key;
        const slot = takeSlot(studioId, now);
        if (slot === undefined) return false;
        const times = { createdAt: createdAt.getTime(), expiresAt: expiresAt.getTime() };
        insert.run({ studioId, id, memberId, ...texts, scopes: scopes.join(' '), ...times, slot });
        recordEvent({ studioId, apiKeyId: id, ...eventOfAct({ ...by, memberId, now }, { action: 'api-key-created' }) });
        return true;
      }),

    async listLiveApiKeys(studioId) {
      return selectLive.all(studioId).flatMap((row) => readablePartsOfKey(apiKeyIn(row), report) ?? []);
    },

    async listFormerApiKeys(studioId, before, limit) {
      const read = (after: string | null, count: number) => selectFormer.all(studioId, after ?? AFTER_ALL_IDS, count);
      const check = (row: Row) => readablePartsOfKey(apiKeyIn(row), report) ?? apiKeyOf(row);
      return readPage({ read, idOf: ({ id }) => id as string, check }, { after: before, limit }, report);
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

const COLUMNS: Readonly<Record<keyof ApiKeyWrite, string>> = {
  memberId: 'member_id',
  secretSha256: 'secret_sha256',
  secretHint: 'secret_hint',
  expiresAt: 'expires_at',
  revokedAt: 'revoked_at',
  quotaLimit: 'quota_limit',
  slot: 'slot',
};

function keyWriter({ database, applyOnce, report }: Connection) {
  const selectById = database.prepare(`SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE studio_id = ? AND id = ?`);
  const selectSlots = database.prepare(`SELECT slot FROM api_keys WHERE studio_id = ? AND slot IN (${SLOTS})`);
  const freeExpiredSlots = database.prepare(
    `UPDATE api_keys SET slot = id WHERE studio_id = ? AND slot IN (${SLOTS}) AND expires_at <= ?`,
  );

  /** Returns a slot that no live key holds; undefined: there is none. To be called within a write. */
  function takeSlot(studioId: string, now: Date): string | undefined {
    freeExpiredSlots.run(studioId, now.getTime());
    const taken = new Set(selectSlots.all(studioId).map((row) => row.slot));
    return KEY_SLOTS.find((slot) => !taken.has(slot));
  }

  function read({ studioId, keyId }: ApiKeyCommand): StoredApiKey | null {
    const row = selectById.get(studioId, keyId);
    return row
      ? { key: apiKeyOf(row), legible: () => readablePartsOfKey(apiKeyIn(row), report), slot: row.slot as string }
      : null;
  }

  function store({ studioId, keyId, now }: ApiKeyCommand, { slot: place, ...fields }: ApiKeyWrite) {
    const slot = place === 'free' ? takeSlot(studioId, now) : place && keyId;
    if (place && slot === undefined) return { kind: 'limit-reached' };
    const columns = Object.entries({ ...fields, slot }).filter(([, value]) => value !== undefined);
    for (const [field, value] of columns) {
      const sql = `UPDATE api_keys SET ${COLUMNS[field as keyof ApiKeyWrite]} = ? WHERE studio_id = ? AND id = ?`;
      database.prepare(sql).run(value instanceof Date ? value.getTime() : (value as SQLInputValue), studioId, keyId);
    }
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
