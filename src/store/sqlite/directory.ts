import type { DatabaseSync } from 'node:sqlite';
import { renewalAfter } from '../../domain/claim-renewal.ts';
import type { DirectoryStore } from '../store.ts';
import { auditWriter } from './audit.ts';
import type { GroupCommit } from './group-commit.ts';
import { leadSourceOf, memberOf, renewalJson, renewalOf, studioOf } from './rows.ts';

/** Studios, members and sources, in SQLite. */
export function sqliteDirectory(database: DatabaseSync, commits: GroupCommit): DirectoryStore {
  const upsertStudio = database.prepare(`
    INSERT INTO studios (id, status, region_code, claim_renewal) VALUES (:id, :status, :regionCode, :renewal)
    ON CONFLICT (id) DO UPDATE SET status = :status, region_code = :regionCode, claim_renewal = :renewal`);
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
    putStudio(put, { memberId, now }) {
      return commits.write(() => {
        const { id } = put;
        const row = selectStudio.get(id);
        const before = row ? studioOf(row) : null;
        const status = put.status ?? before?.status;
        if (status === undefined) return null;
        const regionCode = put.regionCode === undefined ? (before?.regionCode ?? null) : put.regionCode;
        const renewal = row && before ? renewalAfter(before, regionCode, renewalOf(row), now) : null;
        if (before?.status !== status) {
          const from = before?.status ?? null;
          keep({ studioId: id, action: 'studio-status-changed', memberId, time: now, from, to: status });
        }
        upsertStudio.run({ id, status, regionCode, renewal: renewalJson(renewal) });
        return { id, status, regionCode, formerRules: renewal?.formerRules ?? [] };
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
