import { idAndTime } from '../../domain/cursor.ts';
import { LEAD_STAGES, type Lead, type LeadStage, MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { idBounds, isByUpdate, type LeadFilter, type TimeRange } from '../../domain/lead-filter.ts';
import { toPublicLead } from '../../domain/public-lead.ts';
import { type Checked, leadsOfContact, matching, readableOrNull, readableOrThrow } from '../checked.ts';
import { filteredPage, readPage } from '../pages.ts';
import { type ReportUnreadable, UnreadableRecord } from '../port/faults.ts';
import type { LeadCountStore, LeadReadStore, PublicLeadStore } from '../port/lead-reads.ts';
import type { Connection } from './connection.ts';
import { creationFinder, entryRange } from './leads.ts';
import {
  BY_ID,
  COUNTED,
  countedLeadFromRow,
  enquiredLeadFromRow,
  erasedLeadFromRow,
  isErased,
  LEAD_COLUMNS,
  type ListRow,
  lastIdOfFull,
  leadIdFromRow,
  ofStudio,
  type Prepare,
  PUBLIC,
  presentLeadFromRow,
  publicLeadIn,
  recordFromRow,
  WHOLE_LEAD,
  WITH_ORIGINAL,
} from './rows.ts';

/** The maximum number of leads read by a contact key when some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Higher than every lead's id: the upper bound of all pages. */
const AFTER_ALL_IDS = 'ff'.repeat(17);

/** The leads of a studio between two ids, in the order of the ids. */
const BETWEEN = `FROM leads WHERE ${ofStudio()} AND id > unhex(?, '-') AND id < unhex(?, '-') ORDER BY id`;

// `+ 0`, because SQLite replans a query for each new value bound to LIMIT, but not for a computed one.
const PAGE = `${BETWEEN} LIMIT ? + 0`;
const PAGE_FROM_END = `${BETWEEN} DESC LIMIT ? + 0`;

export function sqliteLeadReads({ prepare, isApplied, report }: Connection): LeadReadStore {
  const findByKey = creationFinder(prepare);
  const select = prepare(`SELECT ${WHOLE_LEAD.sql} FROM leads WHERE ${ofStudio()} AND ${BY_ID}`);
  const newest = {
    byId: prepare(`SELECT ${LEAD_COLUMNS.sql} ${PAGE_FROM_END}`),
    byUpdate: byUpdate(prepare, 'newest'),
  };
  const oldest = { byId: prepare(`SELECT ${WITH_ORIGINAL.sql} ${PAGE}`), byUpdate: byUpdate(prepare, 'oldest') };

  const page =
    (first: 'newest' | 'oldest', { byId, byUpdate }: typeof newest): LeadReadStore['listLeads'] =>
    async (studioId, after, limit, filter) => {
      const check = (row: ListRow) => matching(filter, enquiredLeadFromRow(studioId, row));
      if (filter && isByUpdate(filter, first)) {
        const toPosition = (row: ListRow) => `${leadIdFromRow(row)} ${row[LEAD_COLUMNS.at.updatedAt]}`;
        const read = (position: string | null, count: number) => byUpdate(studioId, filter, position, count);
        return readPage(filteredPage({ read, toId: toPosition, check }), { after, limit }, report);
      }
      const [above, below] = idBounds(filter);
      const read = (position: string | null, count: number) =>
        first === 'newest'
          ? byId.all(studioId, above ?? '', position ?? below ?? AFTER_ALL_IDS, count)
          : byId.all(studioId, position ?? above ?? '', below ?? AFTER_ALL_IDS, count);
      const listing = { read, toId: leadIdFromRow, check };
      return readPage(filter ? filteredPage(listing) : listing, { after, limit }, report);
    };

  /** @param find returns null for a lead to skip */
  const walk =
    <Found>(find: (row: ListRow, studioId: string) => Found | null) =>
    async (studioId: string, after: string | null, limit: number) => {
      const rows = oldest.byId.all(studioId, after ?? '', AFTER_ALL_IDS, limit);
      return { leads: rows.flatMap((row) => find(row, studioId) ?? []), next: lastIdOfFull(rows, limit) };
    };

  return {
    findLeadByIdempotencyKey: async (studioId, idempotencyKey) => findByKey(studioId, idempotencyKey),

    async findLead(studioId, leadId) {
      const row = select.get(studioId, leadId);
      return row ? readableOrThrow(enquiredLeadFromRow(studioId, row)) : null;
    },

    async findLeadRecord(studioId, leadId) {
      const row = select.get(studioId, leadId);
      return row ? recordFromRow(studioId, row, report) : null;
    },

    async presenceOfLead(studioId, leadId) {
      const row = select.get(studioId, leadId);
      return row ? (isErased(row) ? 'erased' : 'present') : null;
    },

    isLeadChangeApplied: async (_studioId, _leadId, requestId) => isApplied(requestId),

    findLeadsOfContact: contactFinder(prepare, report),

    listLeads: page('newest', newest),

    walkLeads: page('oldest', oldest),

    ...publicLeads(prepare, report, (studioId, leadId) => select.get(studioId, leadId) as ListRow),

    ...leadCounts(prepare, report),

    walkUnerasedLeads: walk((row) => (isErased(row) ? null : { id: leadIdFromRow(row) })),

    walkErasedLeads: walk((row, studioId) =>
      readableOrNull(isErased(row) ? erasedLeadFromRow(studioId, row) : null, report),
    ),
  };
}

/** @param selectRow returns all columns of a lead */
function publicLeads(
  prepare: Prepare,
  report: ReportUnreadable,
  selectRow: (studioId: string, leadId: string) => ListRow,
): PublicLeadStore {
  const select = prepare(`SELECT ${PUBLIC} FROM leads WHERE ${ofStudio()} AND ${BY_ID}`);
  const selectPage = prepare(`SELECT ${PUBLIC} ${PAGE_FROM_END}`);

  /** Returns a public lead as JSON; null: it was erased. @param row PUBLIC */
  function publicLeadFromRow(studioId: string, row: ListRow): Checked<string> | null {
    const text = publicLeadIn(row);
    if (text !== undefined) return text;
    const lead = presentLeadFromRow(studioId, selectRow(studioId, leadIdFromRow(row)));
    return lead === null || lead instanceof UnreadableRecord ? lead : toPublicLead(lead);
  }

  return {
    async findPublicLead(studioId, leadId) {
      const row = select.get(studioId, leadId);
      return row ? readableOrThrow(publicLeadFromRow(studioId, row)) : null;
    },

    async listPublicLeads(studioId, before, limit) {
      const read = (position: string | null, count: number) =>
        selectPage.all(studioId, '', position ?? AFTER_ALL_IDS, count);
      const check = (row: ListRow) => publicLeadFromRow(studioId, row);
      return readPage({ read, toId: leadIdFromRow, check }, { after: before, limit }, report);
    },
  };
}

/**
 * Returns a function that reads leads of some stages, or of all, in the order of their changes. Each stage is a range
 * of one index. SQLite merges these ranges, so it sorts nothing.
 */
function byUpdate(prepare: Prepare, first: 'newest' | 'oldest') {
  const [order, beyond, columns] = first === 'newest' ? ['DESC', '<', LEAD_COLUMNS] : ['ASC', '>', WITH_ORIGINAL];
  const ofStage = (_: LeadStage, index: number) => `
    SELECT updated_at AS at, id, number FROM leads
    WHERE ${ofStudio('?1')} AND erased_at IS NULL AND stage = ?${index + 7}
      AND updated_at >= ?2 AND updated_at < ?3 AND (updated_at, id) ${beyond} (?4, unhex(?5, '-'))`;
  const select = prepare(`
    SELECT ${columns.sql}
    FROM (${LEAD_STAGES.map(ofStage).join(' UNION ALL ')} ORDER BY 1 ${order}, 2 ${order} LIMIT ?6 + 0) AS page
    JOIN leads ON leads.number = page.number ORDER BY page.at ${order}, page.id ${order}`);
  return (studioId: string, { stages, updated }: LeadFilter, position: string | null, count: number): ListRow[] => {
    const [from, to] = computeChangeRange(updated);
    const start = first === 'newest' ? ([AFTER_ALL_IDS, to] as const) : (['', from - 1] as const);
    const [id, ms] = position === null ? start : idAndTime(position);
    // The position alone would suffice, but SQLite might not start there.
    const range = first === 'newest' ? [from, Math.min(ms + 1, to)] : [Math.max(ms, from), to];
    const wanted = LEAD_STAGES.map((stage) => (stages.length === 0 || stages.includes(stage) ? stage : null));
    return select.all(studioId, ...range, ms, id, count, ...wanted);
  };
}

/** Beyond every readable time. */
const LAST_MS = 9e15;

/** Returns the range of `updated_at`, excluding its end. */
const computeChangeRange = ({ start, end }: TimeRange) =>
  [start?.getTime() ?? -LAST_MS, end?.getTime() ?? LAST_MS] as const;

function leadCounts(prepare: Prepare, report: ReportUnreadable): LeadCountStore {
  const selectToCount = prepare(`SELECT ${COUNTED} ${PAGE_FROM_END}`);
  // The order of changes makes SQLite use that index, and read no more of it than it counts.
  const count = prepare(`
    SELECT count(*) FROM (
      SELECT 1 FROM leads
      WHERE ${ofStudio()} AND stage = ? AND erased_at IS NULL AND updated_at >= ? AND updated_at < ?
      ORDER BY updated_at LIMIT ? + 0)`);
  return {
    async listLeadsToCount(studioId, before, limit, filter) {
      const [above, below] = idBounds(filter);
      const rows = selectToCount.all(studioId, above ?? '', before ?? below ?? AFTER_ALL_IDS, limit);
      const records = rows.flatMap((row) => readableOrNull(countedLeadFromRow(studioId, row), report) ?? []);
      return { records, next: lastIdOfFull(rows, limit) };
    },

    measureStage: async (studioId, stage, filter, bound) =>
      Number(
        count.get(studioId, stage, ...computeChangeRange(filter?.updated ?? { start: null, end: null }), bound)?.[0],
      ),
  };
}

function contactFinder(prepare: Prepare, report: ReportUnreadable): LeadReadStore['findLeadsOfContact'] {
  const selectFrom = (table: string) =>
    prepare(`
      SELECT ${LEAD_COLUMNS.sql} FROM ${table} JOIN leads ON leads.number = lead_number
      WHERE ${table}.${ofStudio()} AND contact_key BETWEEN ? AND ? ORDER BY contact_key LIMIT ? + 0`);
  const [select, selectFormer] = [selectFrom('contact_claims'), selectFrom('former_contacts')];

  /** Yields rows as they are read. */
  function* rowsOfContact(studioId: string, contactKeys: readonly string[], former: 'former' | undefined) {
    // An open lead's entry is the first of its key. Entries of other keys must not push it out.
    for (const limit of [1, MAX_EXAMINED_OF_CONTACT])
      for (const key of contactKeys)
        yield* (former ? selectFormer : select).iterate(studioId, ...entryRange(key), limit);
  }

  return async (studioId, contactKeys, former) => {
    // Several keys may find the same lead.
    const found = new Map<unknown, Checked<Lead> | null>();
    let readable = 0;
    for (const row of rowsOfContact(studioId, contactKeys, former)) {
      const id = row[LEAD_COLUMNS.at.id];
      if (found.has(id)) continue;
      const lead = presentLeadFromRow(studioId, row);
      found.set(id, lead);
      readable += Number(lead !== null && !(lead instanceof UnreadableRecord));
      if (readable === MAX_LEADS_PER_CONTACT) break;
    }
    return leadsOfContact([...found.values()], report);
  };
}
