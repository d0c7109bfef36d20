import type { Repeatable } from '../../domain/audit.ts';
import { MAX_LEAD_SOURCES, MAX_MEMBERS } from '../../domain/studio.ts';
import { type Checked, checkedListedStudio, checkedStudio, readableOrNull } from '../checked.ts';
import {
  decideEnd,
  decideEntry,
  decideStudio,
  type EventsOfEntry,
  memberEvents,
  sourceEvents,
} from '../decisions/directory.ts';
import { readPage } from '../pages.ts';
import type { DirectoryStore, EndStudioOutcome, PutOutcome } from '../port/directory.ts';
import type { Connection } from './connection.ts';
import { leadSourceOf, memberOf, type Row, STUDIO_FIELDS, studioIn } from './rows.ts';

const MEMBERS = { table: 'members', columns: 'studio_id, id, role', max: MAX_MEMBERS } as const;
const SOURCES = {
  table: 'lead_sources',
  columns: 'studio_id, id, name, enabled = 1 AS enabled',
  max: MAX_LEAD_SOURCES,
} as const;

export function sqliteDirectory(connection: Connection): DirectoryStore {
  const { database, report } = connection;
  const members = entriesIn(connection, MEMBERS, memberOf);
  const sources = entriesIn(connection, SOURCES, leadSourceOf);
  const upsertMember = database.prepare(`
    INSERT INTO members (studio_id, id, role) VALUES (:studioId, :id, :role)
    ON CONFLICT (studio_id, id) DO UPDATE SET role = :role`);
  const upsertSource = database.prepare(`
    INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (:studioId, :id, :name, :enabled)
    ON CONFLICT (studio_id, id) DO UPDATE SET name = :name, enabled = :enabled`);
  const selectSources = database.prepare(
    `SELECT ${SOURCES.columns} FROM lead_sources WHERE studio_id = ? AND id > ? ORDER BY id LIMIT ?`,
  );
  return {
    ...sqliteStudios(connection),

    putMember: ({ studioId, id, role }, by) =>
      members.put(studioId, id, by, () => upsertMember.run({ studioId, id, role }), memberEvents(by, id, role)),

    findMember: async (studioId, memberId) => members.find(studioId, memberId),

    removeMember: (studioId, memberId, by) => members.remove(studioId, memberId, by, memberEvents(by, memberId)),

    putLeadSource({ studioId, id, name, enabled }, by) {
      const write = () => upsertSource.run({ studioId, id, name, enabled: enabled ? 1 : 0 });
      return sources.put(studioId, id, by, write, sourceEvents(by, id, { name, enabled }));
    },

    findLeadSource: async (studioId, sourceId) => sources.find(studioId, sourceId),

    removeLeadSource: (studioId, sourceId, by) => sources.remove(studioId, sourceId, by, sourceEvents(by, sourceId)),

    async listLeadSources(studioId, first, limit) {
      const read = (after: string | null, count: number) => selectSources.all(studioId, after ?? '', count);
      return readPage({ read, idOf, check: leadSourceOf }, { after: first, limit }, report);
    },
  };
}

const idOf = (row: Row) => row.id as string;

function sqliteStudios({
  database,
  applyOnce,
  report,
}: Connection): Pick<DirectoryStore, 'putStudio' | 'endStudio' | 'findStudio' | 'listStudios'> {
  const select = database.prepare(`SELECT id, ${STUDIO_FIELDS} FROM studios WHERE id = ?`);
  const selectPage = database.prepare(`SELECT id, ${STUDIO_FIELDS} FROM studios WHERE id > ? ORDER BY id LIMIT ? + 0`);
  const upsert = database.prepare(`
    INSERT INTO studios (id, status, region_code, quota_limit) VALUES (:id, :status, :regionCode, :quotaLimit)
    ON CONFLICT (id) DO UPDATE SET status = :status, region_code = :regionCode, quota_limit = :quotaLimit`);
  const beginKeeping = database.prepare('DELETE FROM studios_without_enquiries WHERE studio_id = ?');
  const endKeeping = database.prepare('INSERT OR IGNORE INTO studios_without_enquiries (studio_id) VALUES (?)');
  const markAsTest = database.prepare('INSERT OR IGNORE INTO test_studios (studio_id) VALUES (?)');
  const putRetention = database.prepare(
    'INSERT OR REPLACE INTO studio_retentions (studio_id, days, since) VALUES (?, ?, ?)',
  );
  const endRetention = database.prepare('DELETE FROM studio_retentions WHERE studio_id = ?');
  const insertFormerRegion = database.prepare(`
    INSERT OR IGNORE INTO former_regions (studio_id, region_code) VALUES (?, ?)`);
  const selectEnding = database.prepare(`
    SELECT id, ${STUDIO_FIELDS},
      (SELECT count(*) FROM members WHERE studio_id = studios.id) AS members,
      (SELECT count(*) FROM lead_sources WHERE studio_id = studios.id) AS sources
    FROM studios WHERE id = ?`);
  const endings = [
    "UPDATE studios SET status = 'ended' WHERE id = ?",
    'DELETE FROM members WHERE studio_id = ?',
    'DELETE FROM lead_sources WHERE studio_id = ?',
    'DELETE FROM studio_retentions WHERE studio_id = ?',
  ].map((sql) => database.prepare(sql));
  return {
    endStudio: (studioId, by) =>
      applyOnce<Row | undefined, 'end', EndStudioOutcome>({
        subject: { studioId },
        read: () => selectEnding.get(studioId),
        decide(row) {
          const [members, sources] = [row?.members as number, row?.sources as number];
          return decideEnd(row ? { status: row.status, members, sources } : null, by);
        },
        write: () => void endings.map((each) => each.run(studioId)),
      }),

    putStudio: (put, by) =>
      applyOnce({
        subject: { studioId: put.id },
        requestId: by.requestId,
        read: () => select.get(put.id),
        decide(row, isApplied) {
          const found = row && {
            studio: checkedStudio(studioIn(row), report),
            status: row.status,
            quotaLimit: row.studio_quota_limit,
          };
          return decideStudio(found ?? null, put, by, isApplied);
        },
        write({ formerRegions, keepEnquiries, isTest, retention, ...fields }, row) {
          if (isTest) markAsTest.run(put.id);
          if (keepEnquiries !== undefined) (keepEnquiries ? beginKeeping : endKeeping).run(put.id);
          if (retention) putRetention.run(put.id, retention.days, retention.since.getTime());
          else if (retention === null) endRetention.run(put.id);
          for (const each of formerRegions) insertFormerRegion.run(put.id, each ?? '');
          const { status = null, region_code: regionCode = null, studio_quota_limit: quotaLimit = null } = row ?? {};
          upsert.run({ id: put.id, status, regionCode, quotaLimit, ...fields });
          return undefined;
        },
      }),

    async findStudio(studioId) {
      const row = select.get(studioId);
      return row ? checkedStudio(studioIn(row), report) : null;
    },

    async listStudios(first, limit) {
      const read = (after: string | null, count: number) => selectPage.all(after ?? '', count);
      const check = (row: Row) => checkedListedStudio(studioIn(row), report);
      return readPage({ read, idOf, check }, { after: first, limit }, report);
    },
  };
}

function entriesIn<Entry>(
  { database, applyOnce, report }: Connection,
  { table, columns, max }: typeof MEMBERS | typeof SOURCES,
  entryOf: (row: Row) => Checked<Entry>,
) {
  const selectStudio = database.prepare('SELECT status FROM studios WHERE id = ?');
  const select = database.prepare(`SELECT ${columns} FROM ${table} WHERE studio_id = ? AND id = ?`);
  const remove = database.prepare(`DELETE FROM ${table} WHERE studio_id = ? AND id = ?`);
  const count = database.prepare(`SELECT count(*) AS count FROM ${table} WHERE studio_id = ?`);
  const entryIn = (row: Row | undefined) => (row ? readableOrNull(entryOf(row), report) : null);
  return {
    put: (studioId: string, id: string, { requestId }: Repeatable, write: () => unknown, eventsOf: EventsOfEntry) =>
      applyOnce<Row | undefined, 'put', PutOutcome>({
        subject: { studioId },
        requestId,
        read: () => select.get(studioId, id),
        decide(found, isApplied) {
          const isFull = !found && (count.get(studioId)?.count as number) >= max;
          const status = selectStudio.get(studioId)?.status ?? null;
          return decideEntry({ status, before: storedEntry(found), isFull }, eventsOf, isApplied);
        },
        write: () => void write(),
      }),

    find: (studioId: string, id: string) => entryIn(select.get(studioId, id)),

    remove: (studioId: string, id: string, { requestId }: Repeatable, eventsOf: EventsOfEntry) =>
      applyOnce<Row | undefined, 'remove', Entry | null>({
        subject: { studioId },
        requestId,
        read: () => select.get(studioId, id),
        decide(found, isApplied) {
          if (isApplied) return { outcome: null };
          return {
            outcome: entryIn(found),
            write: found ? 'remove' : null,
            events: found ? eventsOf(storedEntry(found)) : [],
          };
        },
        write: () => void remove.run(studioId, id),
      }),
  };
}

/** The role of a member, or the fields of a source. */
const storedEntry = (row: Row | undefined): unknown =>
  row && (row.role ?? { name: row.name, enabled: row.enabled === 1 });
