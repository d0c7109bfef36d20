import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { sameData } from '../../domain/idempotency.ts';
import { claimAfterMove, nextUpdate, openClaim } from '../../domain/lead.ts';
import type { LeadStore } from '../store.ts';
import { auditWriter } from './audit.ts';
import type { GroupCommit } from './group-commit.ts';
import { LEAD_COLUMNS, leadOf } from './rows.ts';

/** Higher than every lead's id, so that the first page is asked for like any other. */
const AFTER_ALL_IDS = 'g';

/** Leads and their claims, in SQLite. */
export function sqliteLeads(database: DatabaseSync, commits: GroupCommit): LeadStore {
  const insert = database.prepare(`
    INSERT INTO leads (
      studio_id, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
      open_contact_key, idempotency_key, fingerprint, fingerprint_version
    ) VALUES (
      :studioId, :id, :displayName, :contactType, :contactValue, :sourceId, :note, :stage, :createdAt, :updatedAt,
      :openContactKey, :idempotencyKey, :fingerprint, :fingerprintVersion
    ) ON CONFLICT DO NOTHING`);
  const selectById = select(`${LEAD_COLUMNS}, open_contact_key`, 'id = ?');
  const selectByKey = select(`${LEAD_COLUMNS}, fingerprint_version, fingerprint`, 'idempotency_key = ?');
  const selectIdByContact = database.prepare('SELECT id FROM leads WHERE studio_id = ? AND open_contact_key = ?');
  const selectPage = select(LEAD_COLUMNS, 'id < ? ORDER BY id DESC LIMIT ?');
  const updateStage = database.prepare(`
    UPDATE leads SET stage = :stage, updated_at = :updatedAt, open_contact_key = :openContactKey
    WHERE studio_id = :studioId AND id = :id`);

  const keep = auditWriter(database);

  /** Reads of a studio's leads, row by row as a list. */
  function select(columns: string, condition: string) {
    const statement = database.prepare(`SELECT ${columns} FROM leads WHERE studio_id = ? AND ${condition}`);
    statement.setReturnArrays(true);
    return statement as unknown as {
      get(...parameters: SQLInputValue[]): SQLOutputValue[] | undefined;
      all(...parameters: SQLInputValue[]): SQLOutputValue[][];
    };
  }

  const findByKey = (studioId: string, idempotencyKey: string) => {
    const row = selectByKey.get(studioId, idempotencyKey);
    if (!row) return null;
    const [version, sha256] = row.slice(-2) as [number, string];
    return { lead: leadOf(studioId, row), fingerprint: { version, sha256 } };
  };
  const holderOf = (studioId: string, openContactKey: string) =>
    selectIdByContact.get(studioId, openContactKey)?.id as string | undefined;

  return {
    createLead(lead, { idempotencyKey, fingerprint, contactKey }) {
      return commits.write(() => {
        const openContactKey = openClaim(contactKey);
        const { changes } = insert.run({
          studioId: lead.studioId,
          id: lead.id,
          displayName: lead.displayName,
          contactType: lead.contact.type,
          contactValue: lead.contact.value,
          sourceId: lead.sourceId,
          note: lead.note,
          stage: lead.stage,
          createdAt: lead.createdAt.getTime(),
          updatedAt: lead.updatedAt.getTime(),
          openContactKey,
          idempotencyKey,
          fingerprint: fingerprint.sha256,
          fingerprintVersion: fingerprint.version,
        });
        if (changes === 1) return { kind: 'created', lead };
        const earlier = findByKey(lead.studioId, idempotencyKey);
        if (earlier) {
          return sameData(earlier.fingerprint, fingerprint)
            ? { kind: 'replayed', lead: earlier.lead }
            : { kind: 'idempotency-conflict' };
        }
        const leadId = holderOf(lead.studioId, openContactKey);
        if (leadId === undefined) throw new Error('a lead was not written, and nothing stands in its way');
        return { kind: 'already-open', leadId };
      });
    },

    async findLeadByIdempotencyKey(studioId, idempotencyKey) {
      return findByKey(studioId, idempotencyKey);
    },

    async findLead(studioId, leadId) {
      const row = selectById.get(studioId, leadId);
      return row ? leadOf(studioId, row) : null;
    },

    async listLeads(studioId, before, limit) {
      return selectPage.all(studioId, before ?? AFTER_ALL_IDS, limit).map((row) => leadOf(studioId, row));
    },

    changeLeadStage({ studioId, leadId, stage, contactKey, memberId, now }) {
      return commits.write(() => {
        const row = selectById.get(studioId, leadId);
        if (!row) return { kind: 'not-found' };
        const lead = leadOf(studioId, row);
        if (lead.stage === stage) return { kind: 'unchanged', lead };
        const openContactKey = claimAfterMove(lead, row.at(-1) as string, stage, contactKey);
        const holder = holderOf(studioId, openContactKey);
        if (holder !== undefined && holder !== leadId) return { kind: 'already-open', leadId: holder };
        const updatedAt = nextUpdate(lead.updatedAt, now);
        updateStage.run({ studioId, id: leadId, stage, updatedAt: updatedAt.getTime(), openContactKey });
        const [from, to] = [lead.stage, stage];
        keep({ studioId, leadId, action: 'lead-stage-changed', memberId, time: updatedAt, from, to });
        return { kind: 'changed', lead: { ...lead, stage, updatedAt } };
      });
    },
  };
}
