import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import { isSameContact } from '../../domain/contact.ts';
import { isOpen, type Lead, MAX_LEADS_PER_CONTACT, nextUpdate } from '../../domain/lead.ts';
import { type Checked, leadsOfContact, readableOrThrow } from '../checked.ts';
import { readPage } from '../pages.ts';
import { CONTACT_RULE_VERSION } from '../release-1-1.ts';
import { replayOutcome } from '../replay-outcome.ts';
import { type LeadStore, type Page, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { appliedRequests } from './applied-requests.ts';
import { auditWriter } from './audit.ts';
import { contactClaims, entryRange } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { changeMark } from './lead-changes.ts';
import { leadUpdater } from './lead-updates.ts';
import { type ListQuery, prepareLists } from './row-lists.ts';
import { CREATION_COLUMNS, earlierLeadOf, isErased, LEAD_COLUMNS, presentLeadOf, storedFingerprint } from './rows.ts';
import { hashBytes, hashesBytes, hashesIn, idText } from './stored-ids.ts';
import { studioNumbers } from './studio-numbers.ts';

/** The maximum number of leads that are read by a key of a contact, if some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Higher than every lead's id; the start of the first page. */
const AFTER_ALL_IDS = 'ff'.repeat(17);

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
    updateLead: leadUpdater(database, commits),
  };
}

type LeadTable = ReturnType<typeof leadTable>;

function leadTable(database: DatabaseSync) {
  let preparedInsert: StatementSync | undefined;
  // Prepared by the first creation: without the index of keys SQLite refuses it, and reads have to go on.
  const insert = () =>
    (preparedInsert ??= database.prepare(`
    INSERT INTO leads (
      studio_number, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
      contact_keys, rule_version, rule_region, idempotency_key, fingerprint, fingerprint_version, changed_since
    ) VALUES (?, unhex(?, '-'), ?, ?, ?, unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, unhex(?, '-'), ?, ?, ?)
      ON CONFLICT (studio_number, idempotency_key) DO NOTHING ON CONFLICT (studio_number, id) DO NOTHING`));
  const selectById = select(LEAD_COLUMNS, "id = unhex(?, '-')");
  const selectToMove = select(`${LEAD_COLUMNS}, number, contact_keys, rule_region`, "id = unhex(?, '-')");
  const selectByKey = select(CREATION_COLUMNS, "idempotency_key = unhex(?, '-')");
  // `+ 0`, because SQLite replans a query for each new value that is bound to LIMIT, but not for a computed one.
  const selectPage = select(LEAD_COLUMNS, "id < unhex(?, '-') ORDER BY id DESC LIMIT ? + 0");
  const selectNext = select(LEAD_COLUMNS, "id > unhex(?, '-') ORDER BY id LIMIT ? + 0");
  const selectOfContact = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS} FROM contact_claims JOIN leads ON leads.number = lead_number
    WHERE contact_claims.studio_number = ? AND contact_key BETWEEN ? AND ?
    ORDER BY contact_key LIMIT ? + 0`,
  );
  const selectOfFormerContact = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS} FROM former_contacts JOIN leads ON leads.number = lead_number
    WHERE former_contacts.studio_number = ? AND contact_key = ? LIMIT ${MAX_LEADS_PER_CONTACT}`,
  );
  const updateStage = database.prepare(`
    UPDATE leads SET stage = ?1, updated_at = ?2, contact_keys = ?3, rule_region = ?4,
      ${changeMark('stage-changed', '?2')}
    WHERE number = ?5`);

  const studios = studioNumbers(database);
  const findByKey = (studioId: string, studio: number | undefined, idempotencyKey: string) => {
    const row = studio === undefined ? undefined : selectByKey.get(studio, idempotencyKey);
    if (!row) return null;
    if (isErased(row)) return { kind: 'erased' } as const;
    const lead = readableOrThrow(earlierLeadOf(studioId, row));
    return { lead, fingerprint: readableOrThrow(storedFingerprint(studioId, row)) };
  };

  const recordEvent = auditWriter(database);
  const claimed = contactClaims(database);
  return {
    insert,
    studios,
    findByKey,
    selectById,
    selectToMove,
    selectPage,
    selectNext,
    selectOfContact,
    selectOfFormerContact,
    updateStage,
    claimed,
    recordEvent,
    requests: appliedRequests(database),
  };

  /** Prepares a query of a studio's leads. */
  function select(columns: string, condition: string) {
    return prepareLists(database, `SELECT ${columns} FROM leads WHERE studio_number = ? AND ${condition}`);
  }
}

function leadCreator(
  commits: Pick<GroupCommit, 'write'>,
  { insert, studios, findByKey, claimed }: LeadTable,
): LeadStore['createLead'] {
  // @rule 4.1.1 4.1.3 4.1.at-once
  return (lead, { idempotencyKey, fingerprint, contactKeys, regionCode }, now = lead.createdAt) => {
    const { studioId, id } = lead;
    // Caches the studio's number, which a write does not.
    studios.of(studioId);
    return commits.write(() => {
      const studio = studios.assign(studioId);
      const holder = isOpen(lead.stage) ? claimed.holderOf(studio, contactKeys) : undefined;
      const number = holder === undefined ? insertLead(studio) : undefined;
      if (number !== undefined) {
        claimed.take(studio, contactKeys, { number, isOpen: isOpen(lead.stage) });
        return { kind: 'created', lead };
      }
      const earlier = findByKey(studioId, studio, idempotencyKey);
      if (earlier) return replayOutcome(earlier, fingerprint);
      if (holder === undefined) throw new Error('the lead was not inserted, and no conflicting lead was found');
      return { kind: 'already-open', leadId: holder };
    });

    /** Returns the number of the lead; undefined: its idempotency key or id exists. */
    function insertLead(studio: number): number | undefined {
      // Positional, because binding by name takes as long as the rest of the statement.
      const { changes, lastInsertRowid } = insert().run(
        studio,
        id,
        lead.displayName,
        lead.contact.type,
        lead.contact.value,
        lead.sourceId,
        lead.note,
        lead.stage,
        lead.createdAt.getTime(),
        lead.updatedAt.getTime(),
        hashesBytes(contactKeys),
        CONTACT_RULE_VERSION,
        regionCode,
        idempotencyKey,
        hashBytes(fingerprint.sha256),
        fingerprint.version,
        now.getTime(),
      );
      return changes === 1 ? Number(lastInsertRowid) : undefined;
    }
  };
}

function leadReader(
  {
    studios,
    findByKey,
    selectById,
    selectPage,
    selectNext,
    selectOfContact,
    selectOfFormerContact,
    requests,
  }: LeadTable,
  report: ReportUnreadable,
): Omit<LeadStore, 'createLead' | 'changeLeadStage' | 'updateLead'> {
  /** Reads a page with a query for the leads after an id. */
  async function page(studioId: string, query: ListQuery, after: string, limit: number): Promise<Page<Lead>> {
    const studio = studios.of(studioId);
    if (studio === undefined) return { records: [], next: null, skipped: 0 };
    const read = (position: string | null, count: number) => query.all(studio, position, count);
    const idOf = ([id]: readonly SQLOutputValue[]) => idText(id as string);
    return readPage({ read, idOf, check: (row) => presentLeadOf(studioId, row) }, { after, limit }, report);
  }

  /** The entry of an open lead is the first of its key, and must not be cut off behind the entries of other keys. */
  function* rowsOfContact(studio: number, contactKeys: readonly string[]) {
    for (const limit of [1, MAX_EXAMINED_OF_CONTACT])
      for (const key of contactKeys) yield* selectOfContact.iterate(studio, ...entryRange(key), limit);
  }

  return {
    async findLeadByIdempotencyKey(studioId, idempotencyKey) {
      return findByKey(studioId, studios.of(studioId), idempotencyKey);
    },

    async findLead(studioId, leadId) {
      const studio = studios.of(studioId);
      const row = studio === undefined ? undefined : selectById.get(studio, leadId);
      return row ? readableOrThrow(presentLeadOf(studioId, row)) : null;
    },

    async presenceOfLead(studioId, leadId) {
      const studio = studios.of(studioId);
      const row = studio === undefined ? undefined : selectById.get(studio, leadId);
      if (!row) return null;
      return isErased(row) ? 'erased' : 'present';
    },

    isLeadChangeApplied: async (_studioId, _leadId, requestId) => requests.has(requestId),

    async findLeadsOfContact(studioId, contactKeys, former) {
      const studio = studios.of(studioId);
      if (studio === undefined) return { leads: [], unreadable: [] };
      const ofFormer = former ? contactKeys.flatMap((key) => selectOfFormerContact.all(studio, hashBytes(key))) : [];
      // A lead may be found by several of its keys.
      const found = new Map<unknown, Checked<Lead> | null>();
      let readable = 0;
      for (const row of [...rowsOfContact(studio, contactKeys), ...ofFormer]) {
        if (found.has(row[0])) continue;
        const lead = presentLeadOf(studioId, row);
        found.set(row[0], lead);
        readable += Number(lead !== null && !(lead instanceof UnreadableRecord));
        if (readable === MAX_LEADS_PER_CONTACT) break;
      }
      return leadsOfContact([...found.values()], report);
    },

    listLeads: (studioId, before, limit) => page(studioId, selectPage, before ?? AFTER_ALL_IDS, limit),

    walkLeads: (studioId, after, limit) => page(studioId, selectNext, after ?? '', limit),
  };
}

function stageChanger(
  commits: Pick<GroupCommit, 'write'>,
  { studios, selectToMove, updateStage, claimed, recordEvent, requests }: LeadTable,
): LeadStore['changeLeadStage'] {
  return ({ studioId, leadId, stage, claims, memberId, caller, now, requestId }) => {
    return commits.write(() => {
      const studio = studios.inWrite(studioId);
      const row = studio === undefined ? undefined : selectToMove.get(studio, leadId);
      const lead = row && readableOrThrow(presentLeadOf(studioId, row));
      if (studio === undefined || !lead) return { kind: 'not-found' };
      if (requests.has(requestId)) return { kind: 'changed', lead };
      if (lead.stage === stage) {
        requests.add(requestId);
        return { kind: 'unchanged', lead };
      }
      const number = row.at(-3) as number;
      let [contactKeys, ruleRegion] = row.slice(-2) as [Uint8Array, string | null];
      const [wasOpen, becomesOpen] = [isOpen(lead.stage), isOpen(stage)];
      if (wasOpen !== becomesOpen) {
        if (!isSameContact(lead.contact, claims.contact)) return { kind: 'other-contact' };
        const holder = becomesOpen ? claimed.holderOf(studio, claims.contactKeys) : undefined;
        if (holder !== undefined) return { kind: 'already-open', leadId: holder };
        const before = hashesIn(contactKeys) ?? [];
        const after = becomesOpen ? claims.contactKeys : [...new Set([...before, ...claims.contactKeys])];
        claimed.free(studio, before, { number, isOpen: wasOpen });
        // Claims that it has already, if its stage was changed by hand.
        claimed.free(studio, after, { number, isOpen: becomesOpen });
        claimed.take(studio, after, { number, isOpen: becomesOpen });
        contactKeys = hashesBytes(after);
        ruleRegion = claims.regionCode;
      }
      const updatedAt = nextUpdate(lead.updatedAt, now);
      updateStage.run(stage, updatedAt.getTime(), contactKeys, ruleRegion, number);
      const [from, to] = [lead.stage, stage];
      recordEvent({ studioId, leadId, action: 'lead-stage-changed', memberId, caller, time: updatedAt, from, to });
      requests.add(requestId);
      return { kind: 'changed', lead: { ...lead, stage, updatedAt } };
    });
  };
}
