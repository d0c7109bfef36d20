import type { DatabaseSync } from 'node:sqlite';
import { idAndTime } from '../../domain/cursor.ts';
import { LEAD_STAGES, type Lead, type LeadStage, MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { isByUpdate, type LeadFilter } from '../../domain/lead-filter.ts';
import { idBelow } from '../../domain/new-id.ts';
import { publicLeadOf } from '../../domain/public-lead.ts';
import { type Checked, leadsOfContact, matching, readableOrNull, readableOrThrow } from '../checked.ts';
import { filteredPage, readPage } from '../pages.ts';
import { UnreadableRecord } from '../port/faults.ts';
import type { LeadReads } from '../port/lead-reads.ts';
import type { Connection } from './connection.ts';
import { creationFinder, entryRange } from './leads.ts';
import {
  COUNTED,
  countedLeadOf,
  enquiredLeadOf,
  erasedLeadOf,
  hashBytes,
  idText,
  isErased,
  LEAD_COLUMNS,
  type ListRow,
  lastIdOfFull,
  PUBLIC,
  prepareLists,
  presentLeadOf,
  publicLeadIn,
  RECORD,
  recordOf,
  WITH_ORIGINAL,
} from './rows.ts';

/** The maximum number of leads that are read by a key of a contact, if some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Higher than every lead's id; the start of the first page. */
const AFTER_ALL_IDS = 'ff'.repeat(17);

/** The leads between two ids, in the order of these. */
const BETWEEN = "id > unhex(?, '-') AND id < unhex(?, '-') ORDER BY id";

export function sqliteLeadReads(connection: Connection): LeadReads {
  const { database, studios, isApplied, report } = connection;
  const findByKey = creationFinder(connection);
  const select = leadSelector(database);
  const selectById = select("id = unhex(?, '-')");
  const selectRecord = select("id = unhex(?, '-')", RECORD);
  // `+ 0`, because SQLite replans a query for each new value that is bound to LIMIT, but not for a computed one.
  const newest = { byId: select(`${BETWEEN} DESC LIMIT ? + 0`, LEAD_COLUMNS), byUpdate: byUpdate(database, 'newest') };
  const oldest = { byId: select(`${BETWEEN} LIMIT ? + 0`), byUpdate: byUpdate(database, 'oldest') };
  function rowOf(studioId: string, leadId: string): ListRow | undefined {
    const studio = studios.of(studioId);
    return studio === undefined ? undefined : selectById.get(studio, leadId);
  }

  const page =
    (first: 'newest' | 'oldest', { byId, byUpdate }: typeof newest): LeadReads['listLeads'] =>
    async (studioId, after, limit, filter) => {
      const studio = studios.of(studioId);
      if (studio === undefined) return { records: [], next: null, skipped: 0 };
      const idOf = (row: ListRow) => idText(row[LEAD_COLUMNS.at.id] as string);
      const check = (row: ListRow) => matching(filter, enquiredLeadOf(studioId, row));
      if (filter && isByUpdate(filter, first)) {
        const positionOf = (row: ListRow) => `${idOf(row)} ${row[LEAD_COLUMNS.at.updatedAt]}`;
        const read = (position: string | null, count: number) => byUpdate(studio, filter, position, count);
        return readPage(filteredPage({ read, idOf: positionOf, check }), { after, limit }, report);
      }
      const [above, below] = [filter?.created.start, filter?.created.end].map((time) => time && idBelow(time));
      const read = (position: string | null, count: number) =>
        first === 'newest'
          ? byId.all(studio, above ?? '', position ?? below ?? AFTER_ALL_IDS, count)
          : byId.all(studio, position ?? above ?? '', below ?? AFTER_ALL_IDS, count);
      const listing = { read, idOf, check };
      return readPage(filter ? filteredPage(listing) : listing, { after, limit }, report);
    };

  return {
    findLeadByIdempotencyKey: async (studioId, idempotencyKey) =>
      findByKey(studioId, studios.of(studioId), idempotencyKey),

    async findLead(studioId, leadId) {
      const row = rowOf(studioId, leadId);
      return row ? readableOrThrow(enquiredLeadOf(studioId, row)) : null;
    },

    async findLeadRecord(studioId, leadId) {
      const studio = studios.of(studioId);
      const row = studio === undefined ? undefined : selectRecord.get(studio, leadId);
      return row ? recordOf(studioId, row, report) : null;
    },

    async presenceOfLead(studioId, leadId) {
      const row = rowOf(studioId, leadId);
      return row ? (isErased(row) ? 'erased' : 'present') : null;
    },

    isLeadChangeApplied: async (_studioId, _leadId, requestId) => isApplied(requestId),

    findLeadsOfContact: contactFinder(connection),

    listLeads: page('newest', newest),

    walkLeads: page('oldest', oldest),

    ...publicLeads(connection, rowOf),

    ...leadCounts(connection),

    walkUnerasedLeads: unerasedWalker(connection),

    async walkErasedLeads(studioId, after, limit) {
      const studio = studios.of(studioId);
      const rows = studio === undefined ? [] : oldest.byId.all(studio, after ?? '', AFTER_ALL_IDS, limit);
      const leads = rows.filter(isErased).flatMap((row) => readableOrNull(erasedLeadOf(studioId, row), report) ?? []);
      return { leads, next: lastIdOfFull(rows, limit) };
    },
  };
}

/** Returns a function that prepares a query of leads of a studio. */
const leadSelector =
  (database: DatabaseSync) =>
  (condition: string, { sql }: { readonly sql: string } = WITH_ORIGINAL) =>
    prepareLists(database, `SELECT ${sql} FROM leads WHERE studio_number = ? AND ${condition}`);

/** @param rowOf returns all columns of a lead */
function publicLeads(
  { database, studios, report }: Connection,
  rowOf: (studioId: string, leadId: string) => ListRow | undefined,
): Pick<LeadReads, 'findPublicLead' | 'listPublicLeads'> {
  const select = leadSelector(database);
  const selectById = select("id = unhex(?, '-')", PUBLIC);
  const selectPage = select(`${BETWEEN} DESC LIMIT ? + 0`, PUBLIC);

  /** Returns the JSON of a public lead; null: it was erased. @param row PUBLIC */
  function publicOf(studioId: string, row: ListRow): Checked<string> | null {
    if (row[PUBLIC.at.erasedAt] !== null) return null;
    const text = publicLeadIn(row);
    if (text !== undefined) return text;
    const lead = presentLeadOf(studioId, rowOf(studioId, idText(row[PUBLIC.at.id] as string)) as ListRow);
    return lead === null || lead instanceof UnreadableRecord ? lead : publicLeadOf(lead);
  }

  return {
    async findPublicLead(studioId, leadId) {
      const studio = studios.of(studioId);
      const row = studio === undefined ? undefined : selectById.get(studio, leadId);
      return row ? readableOrThrow(publicOf(studioId, row)) : null;
    },

    async listPublicLeads(studioId, before, limit) {
      const studio = studios.of(studioId);
      const listing = {
        read: (position: string | null, count: number) =>
          studio === undefined ? [] : selectPage.all(studio, '', position ?? AFTER_ALL_IDS, count),
        idOf: (row: ListRow) => idText(row[PUBLIC.at.id] as string),
        check: (row: ListRow) => publicOf(studioId, row),
      };
      return readPage(listing, { after: before, limit }, report);
    },
  };
}

/**
 * Returns a function that reads leads of some stages, or of all, in the order of their changes. Each stage is a range of one
 * index, from which SQLite takes them one after the other, so that it sorts nothing.
 */
function byUpdate(database: DatabaseSync, first: 'newest' | 'oldest') {
  const [order, beyond, columns] = first === 'newest' ? ['DESC', '<', LEAD_COLUMNS] : ['ASC', '>', WITH_ORIGINAL];
  const ofStage = (_: LeadStage, index: number) => `
    SELECT updated_at AS at, id, number FROM leads
    WHERE studio_number = ?1 AND erased_at IS NULL AND stage = ?${index + 7}
      AND updated_at >= ?2 AND updated_at < ?3 AND (updated_at, id) ${beyond} (?4, unhex(?5, '-'))`;
  const select = prepareLists(
    database,
    `SELECT ${columns.sql}
    FROM (${LEAD_STAGES.map(ofStage).join(' UNION ALL ')} ORDER BY 1 ${order}, 2 ${order} LIMIT ?6 + 0) AS page
    JOIN leads ON leads.number = page.number ORDER BY page.at ${order}, page.id ${order}`,
  );
  return (studio: number, { stages, updated }: LeadFilter, position: string | null, count: number): ListRow[] => {
    const [from, to] = changesOf({ updated });
    const start = first === 'newest' ? ([AFTER_ALL_IDS, to] as const) : (['', from - 1] as const);
    const [id, ms] = position === null ? start : idAndTime(position);
    // The position alone would be enough, but need not be what SQLite begins at.
    const range = first === 'newest' ? [from, Math.min(ms + 1, to)] : [Math.max(ms, from), to];
    const wanted = LEAD_STAGES.map((stage) => (stages.length === 0 || stages.includes(stage) ? stage : null));
    return select.all(studio, ...range, ms, id, count, ...wanted);
  };
}

/** Beyond every time that can be read. */
const LAST_MS = 9e15;

/** The range of `updated_at`, without its end. */
const changesOf = (filter?: Pick<LeadFilter, 'updated'>) =>
  [filter?.updated.start?.getTime() ?? -LAST_MS, filter?.updated.end?.getTime() ?? LAST_MS] as const;

function unerasedWalker({ database, studios }: Connection): LeadReads['walkUnerasedLeads'] {
  const select = prepareLists(
    database,
    `SELECT hex(id), erased_at IS NULL FROM leads WHERE studio_number = ? AND ${BETWEEN} LIMIT ? + 0`,
  );
  return async (studioId, after, limit) => {
    const rows = select.all(studios.of(studioId) ?? null, after ?? '', AFTER_ALL_IDS, limit);
    const leads = rows.flatMap(([id, isPresent]) => (isPresent ? { id: idText(id as string) } : []));
    return { leads, next: lastIdOfFull(rows, limit) };
  };
}

function leadCounts({ database, studios, report }: Connection): Pick<LeadReads, 'listLeadsToCount' | 'measureStage'> {
  const selectToCount = prepareLists(
    database,
    `SELECT ${COUNTED.sql} FROM leads WHERE studio_number = ? AND ${BETWEEN} DESC LIMIT ? + 0`,
  );
  // In the order of changes, so that it takes the index of these, and of that no more than it counts.
  const selectCount = database.prepare(`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM leads
      WHERE studio_number = ? AND stage = ? AND erased_at IS NULL AND updated_at >= ? AND updated_at < ?
      ORDER BY updated_at LIMIT ? + 0)`);
  return {
    async listLeadsToCount(studioId, before, limit, filter) {
      const studio = studios.of(studioId);
      const [above, below] = [filter?.created.start, filter?.created.end].map((time) => time && idBelow(time));
      const ids = [above ?? '', before ?? below ?? AFTER_ALL_IDS] as const;
      const rows = studio === undefined ? [] : selectToCount.all(studio, ...ids, limit);
      const records = rows.flatMap((row) => {
        const lead = countedLeadOf(studioId, row);
        return lead === null ? [] : (readableOrNull(lead, report) ?? []);
      });
      return { records, next: lastIdOfFull(rows, limit) };
    },

    async measureStage(studioId, stage, filter, bound) {
      const [from, to] = changesOf(filter);
      return Number(selectCount.get(studios.of(studioId) ?? null, stage, from, to, bound)?.count);
    },
  };
}

function contactFinder({ database, studios, report }: Connection): LeadReads['findLeadsOfContact'] {
  const selectOfContact = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS.sql} FROM contact_claims JOIN leads ON leads.number = lead_number
    WHERE contact_claims.studio_number = ? AND contact_key BETWEEN ? AND ?
    ORDER BY contact_key LIMIT ? + 0`,
  );
  const selectOfFormerContact = prepareLists(
    database,
    `SELECT ${LEAD_COLUMNS.sql} FROM former_contacts JOIN leads ON leads.number = lead_number
    WHERE former_contacts.studio_number = ? AND contact_key = ? LIMIT ${MAX_LEADS_PER_CONTACT}`,
  );

  /** Yields rows as they are read. */
  function* rowsOfContact(studio: number, contactKeys: readonly string[], former: 'former' | undefined) {
    if (former) {
      for (const key of contactKeys) yield* selectOfFormerContact.iterate(studio, hashBytes(key));
      return;
    }
    // The entry of an open lead is the first of its key, and must not be cut off behind the entries of other keys.
    for (const limit of [1, MAX_EXAMINED_OF_CONTACT])
      for (const key of contactKeys) yield* selectOfContact.iterate(studio, ...entryRange(key), limit);
  }

  return async (studioId, contactKeys, former) => {
    const studio = studios.of(studioId);
    if (studio === undefined) return { leads: [], unreadable: [] };
    // A lead may be found by several of its keys.
    const found = new Map<unknown, Checked<Lead> | null>();
    let readable = 0;
    for (const row of rowsOfContact(studio, contactKeys, former)) {
      const id = row[LEAD_COLUMNS.at.id];
      if (found.has(id)) continue;
      const lead = presentLeadOf(studioId, row);
      found.set(id, lead);
      readable += Number(lead !== null && !(lead instanceof UnreadableRecord));
      if (readable === MAX_LEADS_PER_CONTACT) break;
    }
    return leadsOfContact([...found.values()], report);
  };
}
