import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { type ApiKey, isLive, KEY_SLOTS } from '../../domain/api-key.ts';
import { quotaLimitText } from '../../domain/quota-limit.ts';
import { legibleApiKey, readableOrNull, readableOrThrow } from '../checked.ts';
import { readPage } from '../pages.ts';
import type { ApiKeyStore, ReportUnreadable } from '../store.ts';
import { appliedRequests } from './applied-requests.ts';
import { auditWriter } from './audit.ts';
import type { GroupCommit } from './group-commit.ts';
import { prepareLists } from './row-lists.ts';
import {
  API_KEY_COLUMNS,
  apiKeyIn,
  apiKeyOf,
  leadSourceOf,
  memberOf,
  type Row,
  STUDIO_FIELDS,
  studioOf,
} from './rows.ts';

/** All slots, in SQL. */
const SLOTS = KEY_SLOTS.map((slot) => `'${slot}'`).join();

/** Higher than every key's id. */
const AFTER_ALL_IDS = '\u{10ffff}';

/** API keys and their slots, in SQLite. */
export function sqliteApiKeys(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable = () => {},
): ApiKeyStore {
  const apiKeys = apiKeyTable(database);
  const { selectById, selectLive, selectFormer, selectCredential, updateRevoked, updateQuota, updateUse, recordEvent } =
    apiKeys;

  const requests = appliedRequests(database);
  const legible = (row: Row) => readableOrNull(apiKeyOf(row), report) ?? legibleApiKey(apiKeyIn(row));
  const listedApiKeyOf = (row: Row) => legible(row) ?? apiKeyOf(row);

  return {
    createApiKey: keyCreator(commits, apiKeys),

    async listLiveApiKeys(studioId) {
      return selectLive.all(studioId).flatMap((row) => legible(row) ?? []);
    },

    listFormerApiKeys(studioId, before, limit) {
      const read = (after: string | null, count: number) => selectFormer.all(studioId, after ?? AFTER_ALL_IDS, count);
      const idOf = (row: Row) => row.id as string;
      return readPage({ read, idOf, check: listedApiKeyOf }, { after: before, limit }, report);
    },

    replaceApiKey: keyReplacer(commits, apiKeys),

    revokeApiKey(studioId, keyId, { memberId, caller, now }) {
      return commits.write(() => {
        const row = selectById.get(studioId, keyId);
        if (!row) return null;
        const key = legible(row);
        if (key?.revokedAt) return key;
        updateRevoked.run(now.getTime(), studioId, keyId);
        recordEvent({ studioId, apiKeyId: keyId, action: 'api-key-revoked', memberId, caller, time: now });
        return key && { ...key, revokedAt: now };
      });
    },

    putApiKeyQuota(studioId, keyId, limit, { memberId, caller, now, requestId }) {
      return commits.write(() => {
        const row = selectById.get(studioId, keyId);
        if (!row) return null;
        const key = readableOrThrow(apiKeyOf(row));
        if (requests.has(requestId)) return key;
        requests.add(requestId);
        if (key.quotaLimit === limit) return key;
        updateQuota.run(limit, studioId, keyId);
        const fromTo = { from: quotaLimitText(key.quotaLimit), to: quotaLimitText(limit) };
        const action = 'api-key-quota-changed';
        recordEvent({ studioId, apiKeyId: keyId, action, memberId, caller, time: now, ...fromTo });
        return { ...key, quotaLimit: limit };
      });
    },

    recordApiKeyUse({ studioId, keyId, now, unlessSince }) {
      return commits.write(() => {
        updateUse.run({ studioId, id: keyId, now: now.getTime(), unlessSince: unlessSince.getTime() });
      });
    },

    async findCredential(secretSha256, sourceId = '') {
      const row = selectCredential.get(sourceId, secretSha256);
      if (!row) return null;
      const { apiKey, studio, role, sourceName, sourceEnabled } = credentialIn(row);
      const key = readableOrNull(apiKeyOf(apiKey), report);
      if (!key) return null;
      const { studioId, memberId } = key;
      const member =
        role === null ? null : readableOrNull(memberOf({ studio_id: studioId, id: memberId, role } as Row), report);
      const source =
        sourceName === null
          ? null
          : leadSourceOf({ studio_id: studioId, id: sourceId, name: sourceName, enabled: sourceEnabled } as Row);
      return {
        key,
        studio: studioOf(studio, report),
        issuerRole: member?.role ?? null,
        source: readableOrNull(source, report),
      };
    },
  };
}

/** Splits a row of selectCredential; a list, for speed, because every request reads one. */
function credentialIn(row: readonly SQLOutputValue[]) {
  const [studio_id, id, member_id, name, scopes, secret_sha256, secret_hint, slot, created_at, ...rest] = row;
  const [expires_at, revoked_at, last_used_at, quota_limit, ...joined] = rest;
  const [status, region_code, claim_renewal, former_regions, studio_quota_limit, role, sourceName, sourceEnabled] =
    joined;
  const apiKey = {
    studio_id,
    id,
    member_id,
    name,
    scopes,
    secret_sha256,
    secret_hint,
    slot,
    created_at,
    expires_at,
    revoked_at,
    last_used_at,
    quota_limit,
  } as Row;
  const regions = { region_code, claim_renewal, former_regions };
  const studio = { id: studio_id, status, ...regions, quota_limit: studio_quota_limit } as Row;
  return { apiKey, studio, role, sourceName, sourceEnabled };
}

type ApiKeyTable = ReturnType<typeof apiKeyTable>;

function apiKeyTable(database: DatabaseSync) {
  const insert = database.prepare(`
    INSERT INTO api_keys (
      studio_id, id, member_id, name, scopes, created_at, expires_at, revoked_at, secret_sha256, secret_hint, slot,
      quota_limit
    ) VALUES (
      :studioId, :id, :memberId, :name, :scopes, :createdAt, :expiresAt, NULL, :secretSha256, :secretHint, :slot,
      :quotaLimit
    )`);
  const selectById = database.prepare(`SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE studio_id = ? AND id = ?`);
  const selectLive = database.prepare(`
    SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE studio_id = ? AND slot IN (${SLOTS}) ORDER BY id DESC`);
  const selectFormer = database.prepare(`
    SELECT ${API_KEY_COLUMNS} FROM api_keys WHERE studio_id = ? AND id < ? AND slot NOT IN (${SLOTS})
    ORDER BY id DESC LIMIT ? + 0`);
  const selectCredential = prepareLists(
    database,
    `SELECT ${API_KEY_COLUMNS}, ${STUDIO_FIELDS}, members.role, lead_sources.name, lead_sources.enabled = 1
    FROM api_keys
    JOIN studios ON studios.id = api_keys.studio_id
    LEFT JOIN members ON members.studio_id = api_keys.studio_id AND members.id = api_keys.member_id
    LEFT JOIN lead_sources ON lead_sources.studio_id = api_keys.studio_id AND lead_sources.id = ?
    WHERE secret_sha256 = ?`,
  );
  const selectSlots = database.prepare(`SELECT slot FROM api_keys WHERE studio_id = ? AND slot IN (${SLOTS})`);
  const freeExpiredSlots = database.prepare(
    `UPDATE api_keys SET slot = id WHERE studio_id = ? AND slot IN (${SLOTS}) AND expires_at <= ?`,
  );
  const updateSecret = database.prepare(`
    UPDATE api_keys SET secret_sha256 = :secretSha256, secret_hint = :secretHint, member_id = :memberId,
      expires_at = :expiresAt, slot = coalesce(:slot, slot)
    WHERE studio_id = :studioId AND id = :id`);
  const updateRevoked = database.prepare(
    'UPDATE api_keys SET revoked_at = ?, slot = id WHERE studio_id = ? AND id = ?',
  );
  const updateQuota = database.prepare('UPDATE api_keys SET quota_limit = ? WHERE studio_id = ? AND id = ?');
  const updateUse = database.prepare(`
    UPDATE api_keys SET last_used_at = :now
    WHERE studio_id = :studioId AND id = :id
      AND (coalesce(last_used_at, 0) <= :unlessSince OR last_used_at > :now)`);

  const takeSlot = (studioId: string, now: Date): string | undefined => {
    freeExpiredSlots.run(studioId, now.getTime());
    const taken = new Set(selectSlots.all(studioId).map((row) => row.slot));
    return KEY_SLOTS.find((slot) => !taken.has(slot));
  };

  const recordEvent = auditWriter(database);
  return {
    insert,
    selectById,
    selectLive,
    selectFormer,
    selectCredential,
    updateSecret,
    updateRevoked,
    updateQuota,
    updateUse,
    takeSlot,
    recordEvent,
  };
}

function keyCreator(
  commits: Pick<GroupCommit, 'write'>,
  { insert, takeSlot, recordEvent }: ApiKeyTable,
): ApiKeyStore['createApiKey'] {
  return (key, now, caller) => {
    return commits.write(() => {
      const slot = takeSlot(key.studioId, now);
      if (slot === undefined) return false;
      insert.run({
        studioId: key.studioId,
        id: key.id,
        memberId: key.memberId,
        name: key.name,
        scopes: key.scopes.join(' '),
        createdAt: key.createdAt.getTime(),
        expiresAt: key.expiresAt.getTime(),
        secretSha256: key.secretSha256,
        secretHint: key.secretHint,
        slot,
        quotaLimit: key.quotaLimit,
      });
      const { studioId, id: apiKeyId, memberId } = key;
      recordEvent({ studioId, apiKeyId, action: 'api-key-created', memberId, caller, time: now });
      return true;
    });
  };
}

function keyReplacer(
  commits: Pick<GroupCommit, 'write'>,
  { selectById, updateSecret, takeSlot, recordEvent }: ApiKeyTable,
): ApiKeyStore['replaceApiKey'] {
  return ({ studioId, keyId, memberId, caller, secretSha256, secretHint, expiresAt, now }) => {
    return commits.write(() => {
      const row = selectById.get(studioId, keyId);
      if (!row) return { kind: 'not-found' };
      const key = readableOrThrow(apiKeyOf(row));
      if (key.revokedAt) return { kind: 'revoked' };
      const renewed: ApiKey = { ...key, memberId, secretSha256, secretHint, expiresAt: expiresAt ?? key.expiresAt };
      if (!isLive(renewed, now)) return { kind: 'expired' };
      // A live key keeps its slot; an expired one needs a new one. So does one that only seems live, because this clock
      // is behind that of the process that freed its slot.
      const slot = isLive(key, now) && row.slot !== keyId ? null : takeSlot(studioId, now);
      if (slot === undefined) return { kind: 'limit-reached' };
      updateSecret.run({
        studioId,
        id: keyId,
        memberId,
        secretSha256,
        secretHint,
        expiresAt: renewed.expiresAt.getTime(),
        slot,
      });
      recordEvent({ studioId, apiKeyId: keyId, action: 'api-key-replaced', memberId, caller, time: now });
      return { kind: 'replaced', key: renewed };
    });
  };
}
