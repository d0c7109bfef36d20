import type { DatabaseSync } from 'node:sqlite';
import type { DirectoryStore } from '../store.ts';
import { auditWriter } from './audit.ts';
import type { GroupCommit } from './group-commit.ts';
import { leadSourceOf, memberOf, studioOf } from './rows.ts';

/** Studios, members and sources, in SQLite. */
export function sqliteDirectory(database: DatabaseSync, commits: GroupCommit): DirectoryStore {
  const upsertStudio = database.prepare(`
    INSERT INTO studios (id, status, region_code) VALUES (:id, :status, :regionCode)
    ON CONFLICT (id) DO UPDATE SET status = :status, region_code = :regionCode`);
  const selectStudio = database.prepare('SELECT * FROM studios WHERE id = ?');
  const upsertMember = database.prepare(`
    INSERT INTO members (studio_id, id, role) VALUES (:studioId, :id, :role)
    ON CONFLICT (studio_id, id) DO UPDATE SET role = :role`);
  const selectMember = database.prepare('SELECT * FROM members WHERE studio_id = ? AND id = ?');
  const deleteMember = database.prepare('DELETE FROM members WHERE studio_id = ? AND id = ? RETURNING *');
  const upsertSource = database.prepare(`
    INSERT INTO lead_sources (studio_id, id, name, enabled) VALUES (:studioId, :id, :name, :enabled)
    ON CONFLICT (studio_id, id) DO UPDATE SET name = :name, enabled = :enabled`);
  const selectSource = database.prepare('SELECT * FROM lead_sources WHERE studio_id = ? AND id = ?');
  const selectSources = database.prepare('SELECT * FROM lead_sources WHERE studio_id = ? ORDER BY id');

  const keep = auditWriter(database);

  return {
    putStudio({ id, status, regionCode }, { memberId, now }) {
      return commits.write(() => {
        const from = (selectStudio.get(id)?.status ?? null) as string | null;
        if (from !== status) {
          keep({ studioId: id, action: 'studio-status-changed', memberId, time: now, from, to: status });
        }
        upsertStudio.run({ id, status, regionCode });
      });
    },

    async findStudio(studioId) {
      const row = selectStudio.get(studioId);
      return row ? studioOf(row) : null;
    },

    putMember({ studioId, id, role }) {
      return commits.write(() => {
        if (!selectStudio.get(studioId)) return false;
        upsertMember.run({ studioId, id, role });
        return true;
      });
    },

    async findMember(studioId, memberId) {
      const row = selectMember.get(studioId, memberId);
      return row ? memberOf(row) : null;
    },

    removeMember(studioId, memberId) {
      return commits.write(() => {
        const row = deleteMember.get(studioId, memberId);
        return row ? memberOf(row) : null;
      });
    },

    putLeadSource({ studioId, id, name, enabled }) {
      return commits.write(() => {
        if (!selectStudio.get(studioId)) return false;
        upsertSource.run({ studioId, id, name, enabled: enabled ? 1 : 0 });
        return true;
      });
    },

    async findLeadSource(studioId, sourceId) {
      const row = selectSource.get(studioId, sourceId);
      return row ? leadSourceOf(row) : null;
    },

    async listLeadSources(studioId) {
      return selectSources.all(studioId).map(leadSourceOf);
    },
  };
}
