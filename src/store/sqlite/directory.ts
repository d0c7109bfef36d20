import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { MAX_LEAD_SOURCES, MAX_MEMBERS } from '../../domain/studio.ts';
import { readableOrNull } from '../checked.ts';
import { decideStudio, memberEvent } from '../decisions/directory.ts';
import { readPage } from '../pages.ts';
import type { DirectoryStore, ReportUnreadable } from '../store.ts';
import { appliedRequests } from './applied-requests.ts';
import { applyingOnce } from './apply-once.ts';
import { auditWriter } from './audit.ts';
import type { GroupCommit } from './group-commit.ts';
import { leadSourceOf, listedStudioOf, memberOf, type Row, SOURCE_COLUMNS, STUDIO_COLUMNS, studioOf } from './rows.ts';

/** Studios, members and sources, in SQLite. */
export function sqliteDirectory(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable = () => {},
): DirectoryStore {
  const selectStudio = database.prepare(`SELECT ${STUDIO_COLUMNS} FROM studios WHERE id = ?`);
  return {
    ...sqliteStudios(database, commits, selectStudio, report),
    ...sqliteMembers(database, commits, selectStudio, report),
    ...sqliteLeadSources(database, commits, selectStudio, report),
  };
}

function sqliteStudios(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  selectStudio: StatementSync,
  report: ReportUnreadable,
): Pick<DirectoryStore, 'putStudio' | 'findStudio' | 'listStudios'> {
  const selectStudios = database.prepare(`SELECT ${STUDIO_COLUMNS} FROM studios WHERE id > ? ORDER BY id LIMIT ? + 0`);
  const upsertStudio = database.prepare(`
    INSERT INTO studios (id, status, region_code, quota_limit) VALUES (:id, :status, :regionCode, :quotaLimit)
    ON CONFLICT (id) DO UPDATE SET status = :status, region_code = :regionCode, claim_renewal = NULL, quota_limit = :quotaLimit`);
  const insertFormerRegion = database.prepare(`
    INSERT OR IGNORE INTO former_regions (studio_id, region_code) VALUES (?, ?)`);
  const applyOnce = applyingOnce(database, commits);
  return {
    putStudio: (put, by) =>
      applyOnce({
        subject: { studioId: put.id },
        requestId: by.requestId,
        read: () => selectStudio.get(put.id),
        decide(row, isApplied) {
          const found = row && {
            studio: studioOf(row, report),
            status: row.status,
            quotaLimit: row.studio_quota_limit,
            isRenewing: row.claim_renewal !== null,
          };
          return decideStudio(found ?? null, put, by, isApplied);
        },
        write(row, { formerRegions, ...fields }) {
          for (const each of formerRegions) insertFormerRegion.run(put.id, each ?? '');
          const { status = null, region_code: regionCode = null, studio_quota_limit: quotaLimit = null } = row ?? {};
          upsertStudio.run({ id: put.id, status, regionCode, quotaLimit, ...fields });
          return undefined;
        },
      }),

    async findStudio(studioId) {
      const row = selectStudio.get(studioId);
      return row ? studioOf(row, report) : null;
    },

    async listStudios(first, limit) {
      const read = (after: string | null, count: number) => selectStudios.all(after ?? '', count);
      const idOf = (row: Row) => row.id as string;
      return readPage({ read, idOf, check: (row) => listedStudioOf(row, report) }, { after: first, limit }, report);
    },
  };
}

function sqliteMembers(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  selectStudio: StatementSync,
  report: ReportUnreadable,
): Pick<DirectoryStore, 'putMember' | 'findMember' | 'removeMember'> {
  const upsertMember = database.prepare(`
    INSERT INTO members (studio_id, id, role) VALUES (:studioId, :id, :role)
    ON CONFLICT (studio_id, id) DO UPDATE SET role = :role`);
  const selectMember = database.prepare('SELECT * FROM members WHERE studio_id = ? AND id = ?');
  const deleteMember = database.prepare('DELETE FROM members WHERE studio_id = ? AND id = ? RETURNING *');
  const countMembers = database.prepare('SELECT count(*) AS count FROM members WHERE studio_id = ?');
  const recordEvent = auditWriter(database);
  const requests = appliedRequests(database);
  return {
    putMember({ studioId, id, role }, by) {
      return commits.write(() => {
        if (!selectStudio.get(studioId)) return 'no-studio';
        if (requests.has(by.requestId)) return 'put';
        const before = selectMember.get(studioId, id);
        if (!before && isFull(countMembers, studioId, MAX_MEMBERS)) return 'limit-reached';
        if (before?.role !== role) recordEvent({ studioId, ...memberEvent(by, id, before?.role, role) });
        upsertMember.run({ studioId, id, role });
        requests.add(by.requestId);
        return 'put';
      });
    },

    async findMember(studioId, memberId) {
      const row = selectMember.get(studioId, memberId);
      return row ? readableOrNull(memberOf(row), report) : null;
    },

    removeMember(studioId, memberId, by) {
      return commits.write(() => {
        if (requests.has(by.requestId)) return null;
        requests.add(by.requestId);
        const row = deleteMember.get(studioId, memberId);
        if (!row) return null;
        recordEvent({ studioId, ...memberEvent(by, memberId, row.role, undefined) });
        return readableOrNull(memberOf(row), report);
      });
    },
  };
}

function sqliteLeadSources(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  selectStudio: StatementSync,
  report: ReportUnreadable,
): Pick<DirectoryStore, 'putLeadSource' | 'removeLeadSource' | 'findLeadSource' | 'listLeadSources'> {
  const upsertSource = database.prepare(`
    INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (:studioId, :id, :name, :enabled)
    ON CONFLICT (studio_id, id) DO UPDATE SET name = :name, enabled = :enabled`);
  const selectSource = database.prepare(`SELECT ${SOURCE_COLUMNS} FROM lead_sources WHERE studio_id = ? AND id = ?`);
  const selectSources = database.prepare(
    `SELECT ${SOURCE_COLUMNS} FROM lead_sources WHERE studio_id = ? AND id > ? ORDER BY id LIMIT ?`,
  );
  const deleteSource = database.prepare(`
    DELETE FROM lead_sources WHERE studio_id = ? AND id = ? RETURNING ${SOURCE_COLUMNS}`);
  const countSources = database.prepare('SELECT count(*) AS count FROM lead_sources WHERE studio_id = ?');
  const requests = appliedRequests(database);
  return {
    putLeadSource({ studioId, id, name, enabled }, { requestId } = {}) {
      return commits.write(() => {
        if (!selectStudio.get(studioId)) return 'no-studio';
        if (requests.has(requestId)) return 'put';
        if (!selectSource.get(studioId, id) && isFull(countSources, studioId, MAX_LEAD_SOURCES)) return 'limit-reached';
        upsertSource.run({ studioId, id, name, enabled: enabled ? 1 : 0 });
        requests.add(requestId);
        return 'put';
      });
    },

    removeLeadSource(studioId, sourceId, { requestId } = {}) {
      return commits.write(() => {
        if (requests.has(requestId)) return null;
        requests.add(requestId);
        const row = deleteSource.get(studioId, sourceId);
        return row ? readableOrNull(leadSourceOf(row), report) : null;
      });
    },

    async findLeadSource(studioId, sourceId) {
      const row = selectSource.get(studioId, sourceId);
      return row ? readableOrNull(leadSourceOf(row), report) : null;
    },

    async listLeadSources(studioId, first, limit) {
      const read = (after: string | null, count: number) => selectSources.all(studioId, after ?? '', count);
      const idOf = (row: Row) => row.id as string;
      return readPage({ read, idOf, check: leadSourceOf }, { after: first, limit }, report);
    },
  };
}

const isFull = (counting: StatementSync, studioId: string, max: number) =>
  (counting.get(studioId)?.count as number) >= max;
