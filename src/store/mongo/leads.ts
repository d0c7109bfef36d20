import { type Filter, MongoBulkWriteError, MongoServerError, UUID, type WriteError } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { isOpen, type Lead, type LeadClaims, MAX_LEADS_PER_CONTACT } from '../../domain/lead.ts';
import { leadsOfContact, readableOrNull, readableOrThrow } from '../checked.ts';
import { decideLeadErasure, decideLeadStage, decideLeadUpdate, replayOutcome } from '../decisions.ts';
import { readPage } from '../pages.ts';
import type { CreateLeadOutcome, LeadErasureStore, LeadStore, ReportUnreadable } from '../store.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  alreadyOpen,
  claimsWithKey,
  creationOf,
  erasedLeadOf,
  FIRST_ID,
  isErased,
  LAST_ID,
  type LeadDocument,
  type LeadKey,
  lastIdOfFull,
  leadDocument,
  leadIdsAfter,
  leadKey,
  openClaim,
  presentLeadOf,
  WITHOUT_HISTORY,
} from './documents.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { leadWriter } from './lead-writer.ts';
import { RecentSet } from './recent-set.ts';
import { serverRefusal } from './server-refusal.ts';

/** The maximum number of leads of a contact that are read, if some are unreadable. */
const MAX_EXAMINED_OF_CONTACT = 10 * MAX_LEADS_PER_CONTACT;

/** Leads and their claims, in MongoDB. */
export function mongoLeads(connection: Connection, report: ReportUnreadable): LeadStore & LeadErasureStore {
  const write = leadWriter(connection);
  return {
    createLead: leadCreator(connection),
    ...leadReader(connection, report),
    eraseLead: write(decideLeadErasure),
    changeLeadStage: write(decideLeadStage),
    updateLead: write(decideLeadUpdate),
  };
}

function leadCreator(connection: Connection): LeadStore['createLead'] {
  const { call, indexes } = connection;
  const mutex = new KeyedMutex();
  const inserts = batchedInserts(connection);
  const findConflict = conflictReader(connection);
  const keys = new RecentSet();

  function create(
    lead: Lead,
    claims: LeadClaims,
    deadline: AbortSignal,
    { isKeySeen, now }: { readonly isKeySeen: boolean; readonly now: Date | undefined },
  ): Promise<CreateLeadOutcome> {
    const document = leadDocument(lead, claims, now);
    return untilKnown(deadline, async () => {
      await indexes.expectValid('leads');
      // A likely replay: its insert would be refused, and the batch would need a second command.
      const earlier = isKeySeen ? await findConflict(lead, claims, deadline) : undefined;
      if (earlier) return earlier;
      try {
        const { refusal } = await inserts.submit(document, deadline);
        // Without its message, which may contain values.
        if (refusal) throw new MongoServerError({ message: 'refused', code: refusal.code });
        return { kind: 'created', lead };
      } catch (error) {
        deadline.throwIfAborted();
        const refused = serverRefusal(error);
        if (refused) throw refused;
        // Refused by an index, or the outcome is unknown: what is stored decides.
        const conflict = await findConflict(lead, claims, deadline);
        if (conflict) return conflict;
        throw error;
      }
    });
  }

  // @rule 4.1.1 4.1.3 4.1.at-once
  return (lead, claims, now) =>
    call((deadline) => {
      const { studioId } = lead;
      const key = `key ${studioId} ${claims.idempotencyKey}`;
      const isKeySeen = keys.add(key);
      const names = [key, ...claims.contactKeys.map((contactKey) => `contact ${studioId} ${contactKey}`)];
      return mutex.run(
        names,
        () => create(lead, claims, deadline, { isKeySeen, now }),
        () => findConflict(lead, claims, deadline),
      );
    });
}

/** Inserts documents; returns for each one why it was refused, if it was. */
const batchedInserts = ({ batched }: Connection) =>
  batched<LeadDocument, { readonly refusal?: WriteError | undefined }>(async ({ leads }, documents) => {
    try {
      // The server must not insert documents after the call has stopped waiting.
      await leads.insertMany(documents, { ordered: false, maxTimeMS: STORE_SILENCE_MS });
      return documents.map(() => ({}));
    } catch (error) {
      if (!(error instanceof MongoBulkWriteError)) throw error;
      const refusals = new Map([error.writeErrors].flat().map((refusal) => [refusal.index, refusal]));
      // The driver also throws this error when the whole command failed. Then not every document is accounted for, and
      // the outcome of all of them is unknown.
      const isKnown = error.insertedCount + refusals.size === documents.length;
      if (!isKnown || error.result.getWriteConcernError()) throw error;
      return documents.map((_, index) => ({ refusal: refusals.get(index) }));
    }
  });

/**
 * Finds what conflicts with a new lead: an earlier creation with its idempotency key, or else a lead with its contact.
 *
 * Usually it is the key. If the key has no lead, this reads by contact, and then by key once more. A lead may be
 * committed between these reads, and the caller's own lead must not count as another one. Without the second read by
 * key:
 *
 * 1. A and B are the same creation: one caller, one idempotency key, one contact. They may be a request and its retry
 *    at another core, or two attempts of one insert whose response was lost.
 * 2. B's insert is refused by an index, or its outcome is unknown. B reads by key, and finds none.
 * 3. A's lead becomes majority-committed.
 * 4. B reads by contact, finds A's lead, and returns `already-open` to the caller that created it.
 *
 * A lead that is found by contact was committed before the second read by key. Key and contact are in one document, and
 * a majority read is never rolled back: if it is A's lead, the second read by key finds it, too, and B returns a
 * replay. If that finds none, the contact was taken while the key had no lead, which is what `already-open` means. If
 * neither finds one, the conflicting lead is not committed yet, or is gone, and the insert is retried.
 *
 * A crash at any of these points leaves nothing to repair: the one insert has written lead, key and claims, or nothing,
 * and reads write nothing. A retry finds the lead by its key, or creates it.
 */
function conflictReader({ batched }: Connection) {
  const byKey = leadsByKey(batched);
  const byContact = leadsByContact(batched);
  return async (
    lead: Lead,
    { idempotencyKey, contactKeys, fingerprint: claimed }: LeadClaims,
    deadline: AbortSignal,
  ): Promise<CreateLeadOutcome | undefined> => {
    const { studioId } = lead;
    const key = { studioId, idempotencyKey };
    const early = await byKey.submit(key, deadline);
    // A closed lead conflicts with no other lead.
    const readsContact = !early && isOpen(lead.stage);
    const contact = !readsContact
      ? null
      : await byContact.submit({ studioId, contactKeys: contactKeys.map(openClaim) }, deadline);
    const own = early ?? (await byKey.submit(key, deadline));
    if (own) {
      const earlier = creationOf(own);
      // The same id: an insert of this call, whose response was lost.
      if ('lead' in earlier && earlier.lead.id === lead.id) return { kind: 'created', lead };
      return replayOutcome(earlier, claimed);
    }
    return contact ? alreadyOpen(contact) : undefined;
  };
}

/** Finds leads by their idempotency keys. */
const leadsByKey = (batched: Connection['batched']) =>
  batched<{ readonly studioId: string; readonly idempotencyKey: string }, LeadDocument | null>(
    async ({ leads }, keys) => {
      const filter = ofEachStudio(keys, (ofStudio) => ({
        'idempotency.key': { $in: ofStudio.map(({ idempotencyKey }) => new UUID(idempotencyKey)) },
      }));
      const found = await leads.find(filter, WITHOUT_HISTORY).toArray();
      const byKey = new Map(found.map((lead) => [`${lead.studioId} ${lead.idempotency.key}`, lead]));
      return keys.map(({ studioId, idempotencyKey }) => byKey.get(`${studioId} ${idempotencyKey}`) ?? null);
    },
    ({ studioId, idempotencyKey }) => `${studioId} ${idempotencyKey}`,
  );

/** Finds open leads of a contact, by any of its keys. */
const leadsByContact = (batched: Connection['batched']) =>
  batched<{ readonly studioId: string; readonly contactKeys: readonly string[] }, LeadDocument | null>(
    async ({ leads }, contacts) => {
      const filter = ofEachStudio(contacts, (ofStudio) => ({
        openContactKey: { $in: ofStudio.flatMap(({ contactKeys }) => contactKeys) },
      }));
      const found = await leads.find(filter, WITHOUT_HISTORY).toArray();
      const byKey = new Map(
        found.flatMap((lead) => [lead.openContactKey].flat().map((key) => [`${lead.studioId} ${key}`, lead])),
      );
      return contacts.map(({ studioId, contactKeys }) => {
        const key = contactKeys.find((key) => byKey.has(`${studioId} ${key}`));
        return byKey.get(`${studioId} ${key}`) ?? null;
      });
    },
    ({ studioId, contactKeys }) => `${studioId} ${contactKeys}`,
  );

/** Groups a filter by studio; otherwise the database would look up every value in every studio. */
function ofEachStudio<Request extends { readonly studioId: string }>(
  requests: readonly Request[],
  wanted: (ofStudio: readonly Request[]) => Filter<LeadDocument>,
): Filter<LeadDocument> {
  const byStudio = Map.groupBy(requests, ({ studioId }) => studioId);
  const each = [...byStudio].map(([studioId, ofStudio]) => ({ studioId, ...wanted(ofStudio) }));
  return each.length === 1 && each[0] ? each[0] : { $or: each };
}

function leadReader(
  { leads, call, batched }: Connection,
  report: ReportUnreadable,
): Omit<LeadStore & LeadErasureStore, 'createLead' | 'changeLeadStage' | 'updateLead' | 'eraseLead'> {
  const documentsById = batched<LeadKey, LeadDocument | null>(async ({ leads }, keys) => {
    const studioIds = [...new Set(keys.map(({ studioId }) => studioId))];
    const found = await leads
      .find({ studioId: { $in: studioIds }, _id: { $in: [...keys] } }, WITHOUT_HISTORY)
      .toArray();
    const documents = new Map(found.map((document) => [nameOf(document._id), document]));
    return keys.map((key) => documents.get(nameOf(key)) ?? null);
  });
  const documentOf = (studioId: string, leadId: string) =>
    call((deadline) => documentsById.submit(leadKey(studioId, leadId), deadline));

  return {
    findLeadByIdempotencyKey: (studioId, idempotencyKey) =>
      call(() => leads.findOne({ studioId, 'idempotency.key': new UUID(idempotencyKey) }, WITHOUT_HISTORY)).then(
        (found) => found && creationOf(found),
      ),

    async findLead(studioId, leadId) {
      const document = await documentOf(studioId, leadId);
      return document && readableOrThrow(presentLeadOf(document));
    },

    async presenceOfLead(studioId, leadId) {
      const document = await documentOf(studioId, leadId);
      return document && (isErased(document) ? 'erased' : 'present');
    },

    isLeadChangeApplied: (studioId, leadId, requestId) =>
      call(async () => {
        const appliedRequests = new UUID(requestId);
        const applied = { studioId, _id: leadKey(studioId, leadId), appliedRequests } as Filter<LeadDocument>;
        return (await leads.findOne(applied, WITHOUT_HISTORY)) !== null;
      }),

    findLeadsOfContact: (studioId, contactKeys, former) =>
      call(async () => {
        // By prefix: some engines apply the two bounds of a range to different elements of an array.
        const openContactKey = { $in: contactKeys.flatMap((key) => claimsWithKey(key, former)) as string[] };
        const find = (count: number) =>
          leads.find({ studioId, openContactKey }, WITHOUT_HISTORY).limit(count).toArray();
        const sorted = (found: readonly LeadDocument[]) => {
          const each = new Map(found.map((lead) => [nameOf(lead._id), lead])).values();
          return leadsOfContact([...each].map(presentLeadOf), report);
        };
        const found = await find(MAX_LEADS_PER_CONTACT);
        const all = sorted(found);
        if (found.length < MAX_LEADS_PER_CONTACT) return all;
        // Of more leads than that, the open ones must be included.
        const open = { studioId, openContactKey: { $in: contactKeys.map(openClaim) } };
        const first = await leads.find(open, WITHOUT_HISTORY).toArray();
        const rest = all.leads.length < found.length ? await find(MAX_EXAMINED_OF_CONTACT) : found;
        const more = sorted([...first, ...rest]);
        return { ...more, leads: more.leads.slice(0, MAX_LEADS_PER_CONTACT) };
      }),

    listLeads: (studioId, before, limit) =>
      call(() => {
        const read = (after: string | null, count: number) => {
          const end = after === null ? { $lte: leadKey(studioId, LAST_ID) } : { $lt: leadKey(studioId, after) };
          const _id = { $gte: leadKey(studioId, FIRST_ID), ...end };
          return leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: -1 }).limit(count).toArray();
        };
        return readPage({ read, idOf, check: presentLeadOf }, { after: before, limit }, report);
      }),

    walkLeads: (studioId, first, limit) =>
      call(() => {
        const read = (after: string | null, count: number) => {
          const _id = leadIdsAfter(studioId, after);
          return leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: 1 }).limit(count).toArray();
        };
        return readPage({ read, idOf, check: presentLeadOf }, { after: first, limit }, report);
      }),

    walkErasedLeads: (studioId, after, limit) =>
      call(async () => {
        const _id = leadIdsAfter(studioId, after);
        const found = await leads.find({ studioId, _id }, WITHOUT_HISTORY).sort({ _id: 1 }).limit(limit).toArray();
        const erased = found.filter(isErased).flatMap((each) => readableOrNull(erasedLeadOf(each), report) ?? []);
        return { leads: erased, next: lastIdOfFull(found, limit) };
      }),
  };
}

const idOf = ({ _id }: LeadDocument): string => _id.id.toString();

const nameOf = ({ studioId, id }: LeadKey): string => `${studioId} ${id}`;
