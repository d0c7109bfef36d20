import { type Lead, MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { type Checked, leadsOfContact, readableOrNull, readableOrThrow } from '../checked.ts';
import { readPage } from '../pages.ts';
import { type LeadErasureStore, type LeadStore, type Page, UnreadableRecord } from '../store.ts';
import type { Connection } from './connection.ts';
import { creationFinder, entryRange } from './leads.ts';
import {
  enquiredLeadOf,
  erasedLeadOf,
  hashBytes,
  idText,
  isErased,
  LEAD_COLUMNS,
  type ListQuery,
  type ListRow,
  lastIdOfFull,
  prepareLists,
  presentLeadOf,
  WITH_ORIGINAL,
} from './rows.ts';

/** The maximum number of leads that are read by a key of a contact, if some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Higher than every lead's id; the start of the first page. */
const AFTER_ALL_IDS = 'ff'.repeat(17);

export function sqliteLeadReads(
  connection: Connection,
): Omit<LeadStore & LeadErasureStore, 'createLead' | 'changeLeadStage' | 'updateLead' | 'eraseLead' | 'deleteLeads'> {
  const { database, studios, isApplied, report } = connection;
  const findByKey = creationFinder(connection);
  const select = (condition: string, { sql }: { readonly sql: string } = WITH_ORIGINAL) =>
    prepareLists(database, `SELECT ${sql} FROM leads WHERE studio_number = ? AND ${condition}`);
  const selectById = select("id = unhex(?, '-')");
  // `+ 0`, because SQLite replans a query for each new value that is bound to LIMIT, but not for a computed one.
  const selectPage = select("id < unhex(?, '-') ORDER BY id DESC LIMIT ? + 0", LEAD_COLUMNS);
  const selectNext = select("id > unhex(?, '-') ORDER BY id LIMIT ? + 0");
  function rowOf(studioId: string, leadId: string): ListRow | undefined {
    const studio = studios.of(studioId);
    return studio === undefined ? undefined : selectById.get(studio, leadId);
  }

  async function page(studioId: string, query: ListQuery, after: string, limit: number): Promise<Page<Lead>> {
    const studio = studios.of(studioId);
    if (studio === undefined) return { records: [], next: null, skipped: 0 };
    const read = (position: string | null, count: number) => query.all(studio, position, count);
    const idOf = (row: ListRow) => idText(row[LEAD_COLUMNS.at.id] as string);
    return readPage({ read, idOf, check: (row) => enquiredLeadOf(studioId, row) }, { after, limit }, report);
  }

  return {
    findLeadByIdempotencyKey: async (studioId, idempotencyKey) =>
      findByKey(studioId, studios.of(studioId), idempotencyKey),

    async findLead(studioId, leadId) {
      const row = rowOf(studioId, leadId);
      return row ? readableOrThrow(enquiredLeadOf(studioId, row)) : null;
    },

    async presenceOfLead(studioId, leadId) {
      const row = rowOf(studioId, leadId);
      return row ? (isErased(row) ? 'erased' : 'present') : null;
    },

    isLeadChangeApplied: async (_studioId, _leadId, requestId) => isApplied(requestId),

    findLeadsOfContact: contactFinder(connection),

    listLeads: (studioId, before, limit) => page(studioId, selectPage, before ?? AFTER_ALL_IDS, limit),

    walkLeads: (studioId, after, limit) => page(studioId, selectNext, after ?? '', limit),

    async walkErasedLeads(studioId, after, limit) {
      const studio = studios.of(studioId);
      const rows = studio === undefined ? [] : selectNext.all(studio, after ?? '', limit);
      const leads = rows.filter(isErased).flatMap((row) => readableOrNull(erasedLeadOf(studioId, row), report) ?? []);
      return { leads, next: lastIdOfFull(rows, limit) };
    },
  };
}

function contactFinder({ database, studios, report }: Connection): LeadStore['findLeadsOfContact'] {
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

  /** The entry of an open lead is the first of its key, and must not be cut off behind the entries of other keys. */
  function* rowsOfContact(studio: number, contactKeys: readonly string[]) {
    for (const limit of [1, MAX_EXAMINED_OF_CONTACT])
      for (const key of contactKeys) yield* selectOfContact.iterate(studio, ...entryRange(key), limit);
  }

  return async (studioId, contactKeys, former) => {
    const studio = studios.of(studioId);
    if (studio === undefined) return { leads: [], unreadable: [] };
    const ofFormer = former ? contactKeys.flatMap((key) => selectOfFormerContact.all(studio, hashBytes(key))) : [];
    // A lead may be found by several of its keys.
    const found = new Map<unknown, Checked<Lead> | null>();
    let readable = 0;
    for (const row of [...rowsOfContact(studio, contactKeys), ...ofFormer]) {
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
