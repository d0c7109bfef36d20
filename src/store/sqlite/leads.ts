import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isOpen, type Lead, MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { type Checked, leadsOfContact, readableOrNull, readableOrThrow } from '../checked.ts';
import { decideLeadErasure, decideLeadStage, decideLeadUpdate } from '../decisions/leads.ts';
import { replayOutcome } from '../decisions/replay-lead.ts';
import { readPage } from '../pages.ts';
import { CONTACT_RULE_VERSION } from '../release-1-1.ts';
import { type LeadErasureStore, type LeadStore, type Page, type ReportUnreadable, UnreadableRecord } from '../store.ts';
import { appliedRequests } from './applied-requests.ts';
import { contactClaims, entryRange } from './contact-claims.ts';
import type { GroupCommit } from './group-commit.ts';
import { leadWriter } from './lead-writer.ts';
import { type ListQuery, prepareLists } from './row-lists.ts';
import {
  CREATION,
  earlierLeadOf,
  erasedLeadOf,
  isErased,
  LEAD_COLUMNS,
  type ListRow,
  lastIdOfFull,
  presentLeadOf,
  storedFingerprint,
} from './rows.ts';
import { hashBytes, hashesBytes, idText } from './stored-ids.ts';
import { type StudioNumbers, studioNumbers } from './studio-numbers.ts';

/** The maximum number of leads that are read by a key of a contact, if some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Higher than every lead's id; the start of the first page. */
const AFTER_ALL_IDS = 'ff'.repeat(17);

/**
 * Leads and their claims, in SQLite. `secure_delete` overwrites erased data in the file, too, once the log is checkpointed.
 *
 * @param erased called after the commit of an erasure
 */
export function sqliteLeads(
  database: DatabaseSync,
  commits: Pick<GroupCommit, 'write'>,
  report: ReportUnreadable = () => {},
  erased: () => unknown = () => {},
): LeadStore & LeadErasureStore {
  const studios = studioNumbers(database);
  const findByKey = creationFinder(database);
  const write = leadWriter(database, commits);
  const eraseLead = write(decideLeadErasure);
  const requests = appliedRequests(database);
  return {
    createLead: leadCreator(database, { commits, studios, findByKey }),
    ...leadReader(database, { studios, findByKey }, report),
    isLeadChangeApplied: async (_studioId, _leadId, requestId) => requests.has(requestId),
    changeLeadStage: write(decideLeadStage),
    updateLead: write(decideLeadUpdate),
    async eraseLead(erasure) {
      const outcome = await eraseLead(erasure);
      if (outcome.kind === 'erased') erased();
      return outcome;
    },
  };
}

/** Returns a function that finds the creation with an idempotency key. */
function creationFinder(database: DatabaseSync) {
  const select = prepareLists(
    database,
    `SELECT ${CREATION.sql} FROM leads WHERE studio_number = ? AND idempotency_key = unhex(?, '-')`,
  );
  return (studioId: string, studio: number | undefined, idempotencyKey: string) => {
    const row = studio === undefined ? undefined : select.get(studio, idempotencyKey);
    if (!row) return null;
    if (isErased(row)) return { kind: 'erased' } as const;
    const lead = readableOrThrow(earlierLeadOf(studioId, row));
    return { lead, fingerprint: readableOrThrow(storedFingerprint(studioId, row)) };
  };
}

interface Parts {
  readonly commits: Pick<GroupCommit, 'write'>;
  readonly studios: StudioNumbers;
  readonly findByKey: ReturnType<typeof creationFinder>;
}

function leadCreator(database: DatabaseSync, { commits, studios, findByKey }: Parts): LeadStore['createLead'] {
  let preparedInsert: StatementSync | undefined;
  // Prepared by the first creation: without the index of keys SQLite refuses it, and reads have to go on.
  const insert = () =>
    (preparedInsert ??= database.prepare(`
    INSERT INTO leads (
      studio_number, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
      contact_keys, rule_version, rule_region, idempotency_key, fingerprint, fingerprint_version, changed_since
    ) VALUES (?, unhex(?, '-'), ?, ?, ?, unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, unhex(?, '-'), ?, ?, ?)
      ON CONFLICT (studio_number, idempotency_key) DO NOTHING ON CONFLICT (studio_number, id) DO NOTHING`));
  const claimed = contactClaims(database);
  // @rule 4.1.1 4.1.3 4.1.at-once
  return (lead, { idempotencyKey, fingerprint, contactKeys, regionCode }, now = lead.createdAt) => {
    const { studioId, id } = lead;
    // Caches the studio's number, which a write does not.
    studios.of(studioId);
    return commits.write(() => {
      const studio = studios.assign(studioId);
      const holder = isOpen(lead.stage) ? claimed.holderAfterFreeingStale(studio, contactKeys) : undefined;
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
  database: DatabaseSync,
  { studios, findByKey }: Omit<Parts, 'commits'>,
  report: ReportUnreadable,
): Omit<
  LeadStore & LeadErasureStore,
  'createLead' | 'isLeadChangeApplied' | 'changeLeadStage' | 'updateLead' | 'eraseLead'
> {
  const select = (condition: string) =>
    prepareLists(database, `SELECT ${LEAD_COLUMNS.sql} FROM leads WHERE studio_number = ? AND ${condition}`);
  const selectById = select("id = unhex(?, '-')");
  // `+ 0`, because SQLite replans a query for each new value that is bound to LIMIT, but not for a computed one.
  const selectPage = select("id < unhex(?, '-') ORDER BY id DESC LIMIT ? + 0");
  const selectNext = select("id > unhex(?, '-') ORDER BY id LIMIT ? + 0");
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

  /** Reads a page with a query for the leads after an id. */
  async function page(studioId: string, query: ListQuery, after: string, limit: number): Promise<Page<Lead>> {
    const studio = studios.of(studioId);
    if (studio === undefined) return { records: [], next: null, skipped: 0 };
    const read = (position: string | null, count: number) => query.all(studio, position, count);
    const idOf = (row: ListRow) => idText(row[LEAD_COLUMNS.at.id] as string);
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

    async findLeadsOfContact(studioId, contactKeys, former) {
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
    },

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
