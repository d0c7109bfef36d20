import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { isOpen, nextUpdate } from '../../domain/lead.ts';
import { whole } from '../checked.ts';
import { readPage } from '../pages.ts';
import { repetitionOf } from '../repetition.ts';
import type { LeadStore, ReportUnreadable } from '../store.ts';
import { auditWriter } from './audit.ts';
import { contactClaims, keysAsText, keysOf } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { earlierLeadOf, FINGERPRINT_COLUMNS, keptFingerprint, LEAD_COLUMNS, leadOf, number } from './rows.ts';

/** Higher than every lead's id, so that the first page is asked for like any other. */
const AFTER_ALL_IDS = 'g';

/** Leads and their claims, in SQLite. */
export function sqliteLeads(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable = () => {},
): LeadStore {
  const leads = leadTable(database);
  return {
    createLead: leadCreator(commits, leads),
    ...leadReader(leads, report),
    changeLeadStage: stageChanger(commits, leads),
  };
}

type LeadTable = ReturnType<typeof leadTable>;

function leadTable(database: DatabaseSync) {
  const insert = database.prepare(`
    INSERT INTO leads (
      studio_id, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
      contact_keys, rule_version, rule_region, idempotency_key, fingerprint, fingerprint_version
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const selectById = select(`${LEAD_COLUMNS}, contact_keys, ${number('rule_version')}, rule_region`, 'id = ?');
  const selectByKey = select(`${LEAD_COLUMNS}, ${FINGERPRINT_COLUMNS}`, 'idempotency_key = ?');
  const selectPage = select(LEAD_COLUMNS, 'id < ? ORDER BY id DESC LIMIT ?');
  const updateStage = database.prepare(`
    UPDATE leads SET stage = :stage, updated_at = :updatedAt, contact_keys = :contactKeys, rule_version = :ruleVersion,
      rule_region = :ruleRegion
    WHERE studio_id = :studioId AND id = :id`);

  const findByKey = (studioId: string, idempotencyKey: string) => {
    const row = selectByKey.get(studioId, idempotencyKey);
    return row
      ? { lead: whole(earlierLeadOf(studioId, row)), fingerprint: whole(keptFingerprint(studioId, row)) }
      : null;
  };

  const keep = auditWriter(database);
  const claimed = contactClaims(database);
  return { insert, findByKey, selectById, selectPage, updateStage, claimed, keep };

  /** Reads of a studio's leads, row by row as a list. */
  function select(columns: string, condition: string) {
    const statement = database.prepare(`SELECT ${columns} FROM leads WHERE studio_id = ? AND ${condition}`);
    statement.setReturnArrays(true);
    return statement as unknown as {
      get(...parameters: SQLInputValue[]): SQLOutputValue[] | undefined;
      all(...parameters: SQLInputValue[]): SQLOutputValue[][];
    };
  }
}

function leadCreator(
  commits: Pick<GroupCommit, 'write'>,
  { insert, findByKey, claimed }: LeadTable,
): LeadStore['createLead'] {
  // @rule 4.1.1 4.1.3 4.1.at-once
  return (lead, { idempotencyKey, fingerprint, contactKeys, contactRule }) => {
    return commits.write(() => {
      const { studioId, id } = lead;
      const holder = claimed.holderOf(studioId, contactKeys);
      if (holder === undefined && insertLead()) {
        claimed.take(studioId, contactKeys, id);
        return { kind: 'created', lead };
      }
      const earlier = findByKey(studioId, idempotencyKey);
      if (earlier) return repetitionOf(earlier, fingerprint);
      if (holder === undefined) throw new Error('a lead was not written, and nothing stands in its way');
      return { kind: 'already-open', leadId: holder };
    });

    function insertLead(): boolean {
      // By position, in the order of the statement: looking up names takes as long as the rest of it.
      const { changes } = insert.run(
        lead.studioId,
        lead.id,
        lead.displayName,
        lead.contact.type,
        lead.contact.value,
        lead.sourceId,
        lead.note,
        lead.stage,
        lead.createdAt.getTime(),
        lead.updatedAt.getTime(),
        keysAsText(contactKeys),
        contactRule.version,
        contactRule.region,
        idempotencyKey,
        fingerprint.sha256,
        fingerprint.version,
      );
      return changes === 1;
    }
  };
}

function leadReader(
  { findByKey, selectById, selectPage }: LeadTable,
  report: ReportUnreadable,
): Pick<LeadStore, 'findLeadByIdempotencyKey' | 'findLead' | 'listLeads'> {
  return {
    async findLeadByIdempotencyKey(studioId, idempotencyKey) {
      return findByKey(studioId, idempotencyKey);
    },

    async findLead(studioId, leadId) {
      const row = selectById.get(studioId, leadId);
      return row ? whole(leadOf(studioId, row)) : null;
    },

    async listLeads(studioId, before, limit) {
      const read = (after: string | null, count: number) => selectPage.all(studioId, after ?? AFTER_ALL_IDS, count);
      const idOf = ([id]: readonly SQLOutputValue[]) => id as string;
      return readPage({ read, idOf, check: (row) => leadOf(studioId, row) }, { after: before, limit }, report);
    },
  };
}

function stageChanger(
  commits: Pick<GroupCommit, 'write'>,
  { selectById, updateStage, claimed, keep }: LeadTable,
): LeadStore['changeLeadStage'] {
  return ({ studioId, leadId, stage, claims, memberId, now }) => {
    return commits.write(() => {
      const row = selectById.get(studioId, leadId);
      if (!row) return { kind: 'not-found' };
      const lead = whole(leadOf(studioId, row));
      if (lead.stage === stage) return { kind: 'unchanged', lead };
      let [contactKeys, ruleVersion, ruleRegion] = row.slice(-3) as [string, number, string | null];
      if (!isOpen(stage)) {
        claimed.free(studioId, keysOf(contactKeys), leadId);
        contactKeys = '';
      } else if (!isOpen(lead.stage)) {
        const holder = claimed.holderOf(studioId, claims.contactKeys);
        if (holder !== undefined) return { kind: 'already-open', leadId: holder };
        claimed.take(studioId, claims.contactKeys, leadId);
        contactKeys = keysAsText(claims.contactKeys);
        ({ version: ruleVersion, region: ruleRegion } = claims.contactRule);
      }
      const updatedAt = nextUpdate(lead.updatedAt, now);
      updateStage.run({
        studioId,
        id: leadId,
        stage,
        updatedAt: updatedAt.getTime(),
        contactKeys,
        ruleVersion,
        ruleRegion,
      });
      const [from, to] = [lead.stage, stage];
      keep({ studioId, leadId, action: 'lead-stage-changed', memberId, time: updatedAt, from, to });
      return { kind: 'changed', lead: { ...lead, stage, updatedAt } };
    });
  };
}
