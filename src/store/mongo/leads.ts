import { type Filter, type FindOptions, MongoServerError, type UpdateFilter, UUID, type WriteError } from 'mongodb';
import { hasEnquiryKey } from '../../domain/enquiry.ts';
import { isOpen, type Lead, type LeadKeys } from '../../domain/lead.ts';
import { type CreateLeadOutcome, replayOutcome } from '../../domain/lead-creation.ts';
import type { Decide } from '../decisions/decision.ts';
import {
  decideEnquiry,
  decideLeadErasure,
  decideLeadStage,
  decideLeadUpdate,
  type EnquiryWrite,
  isKeyOfContact,
  type LeadWrite,
  type StoredLead,
} from '../decisions/leads.ts';
import type { LeadChangeStore, LeadCommand } from '../port/lead-changes.ts';
import type { CreationOptions, LeadCreationStore } from '../port/lead-creation.ts';
import type { LeadErasureStore } from '../port/lead-erasure.ts';
import { changer, KeyedMutex } from './apply-once.ts';
import { type Batched, requestBatcher } from './collections.ts';
import { type Connection, throwIfFinal, untilKnown } from './connection.ts';
import {
  alreadyOpen,
  createUpdate,
  creationFromDocument,
  enquiryDocument,
  enquiryTargetFromDocument,
  type LeadDocument,
  leadDocument,
  leadFromDocument,
  storedLead,
} from './lead-documents.ts';
import { asRead } from './pending-changes.ts';
import { keyText, type LeadKey, leadKey, WITHOUT_HISTORY } from './queries.ts';
import { isOfDocument, serverRefusal } from './server-refusal.ts';
import { closedKey, openKey } from './uniqueness-keys.ts';
import { insertEach } from './write-each.ts';

export function mongoLeadWrites(connection: Connection) {
  const write = leadWriter(connection);
  return {
    createLead: leadCreator(connection),
    eraseLead: write(decideLeadErasure),
    changeLeadStage: write(decideLeadStage),
    updateLead: write(decideLeadUpdate),
  } satisfies LeadCreationStore & LeadChangeStore & Partial<LeadErasureStore>;
}

/** An attempted creation. */
interface Creation extends CreationOptions {
  readonly lead: Lead;
  readonly keys: LeadKeys;
  readonly isKeySeen: boolean;
  /** The leads with which attempts may have stored its enquiry. */
  readonly attemptedAt: LeadKey[];
}

function leadCreator(connection: Connection): LeadCreationStore['createLead'] {
  const { call, indexes } = connection;
  const mutex = new KeyedMutex();
  const inserts = batchedInserts(connection);
  const findConflict = conflictReader(connection);
  const { refuse, refusedBefore } = creationRefuser(connection);
  const releaseStaleKeys = staleKeyReleaser(connection);
  const seenKeys = recentNames();

  /** Returns the outcome if the creation conflicts with a stored lead; undefined: it does not, or that lead has changed. */
  async function findOutcome(creation: Creation, deadline: AbortSignal): Promise<CreateLeadOutcome | undefined> {
    const before = creation.attemptedAt.length > 0 && (await refusedBefore(creation));
    if (before) return before;
    const conflict = await findConflict(creation.lead, creation.keys, deadline);
    if (!conflict || !('_id' in conflict)) return conflict;
    const isReleased = await releaseStaleKeys(conflict, creation.keys.contactKeys);
    return isReleased ? undefined : refuse(creation, conflict, deadline);
  }

  function create(creation: Creation, deadline: AbortSignal): Promise<CreateLeadOutcome> {
    const { lead, keys, now, by } = creation;
    const document = leadDocument(lead, keys, now, by);
    return untilKnown(deadline, async () => {
      await indexes.expectValid('leads');
      // A likely replay is checked first. Its insert would be refused, and the batch would need a second command.
      const isLikely = creation.isKeySeen || creation.attemptedAt.length > 0;
      const earlier = isLikely ? await findOutcome(creation, deadline) : undefined;
      if (earlier) return earlier;
      try {
        const { refusal } = await inserts.submit(document, deadline);
        // Omits its message, which may contain values.
        if (refusal) throw new MongoServerError({ message: 'refused', code: refusal.code });
        return { kind: 'created', lead };
      } catch (error) {
        deadline.throwIfAborted();
        const refused = serverRefusal(error);
        if (refused) throw refused;
        // An index refused it, or the outcome is unknown: the stored records decide.
        const conflict = await findOutcome(creation, deadline);
        if (conflict) return conflict;
        throw error;
      }
    });
  }

  // @rule 4.1.1 4.1.3 4.1.at-once
  return (lead, keys, options) =>
    call((deadline) => {
      const { studioId } = lead;
      const key = `key ${studioId} ${keys.idempotencyKey}`;
      const creation: Creation = { ...options, lead, keys, isKeySeen: seenKeys.add(key), attemptedAt: [] };
      const names = [key, ...keys.contactKeys.map((contactKey) => `contact ${studioId} ${contactKey}`)];
      return mutex.run(
        names,
        () => create(creation, deadline),
        // May store an enquiry. If that fails, the creation is attempted like any other.
        () =>
          findOutcome(creation, deadline).catch((error) => {
            deadline.throwIfAborted();
            throwIfFinal(error);
            return undefined;
          }),
      );
    });
}

/**
 * Returns a function that releases some keys of an open lead, unless one of them belongs to its contact. The released
 * keys still find the lead. Returns whether the lead no longer conflicts, or has changed since it was read.
 */
const staleKeyReleaser =
  ({ leads }: Connection) =>
  async (holder: LeadDocument, keys: readonly string[]): Promise<boolean> => {
    const { studioId, _id, openContactKey, contactRule } = holder;
    const held = [openContactKey].flat();
    const shared = keys.filter((key) => held.includes(openKey(key)));
    if (shared.some((key) => isKeyOfContact(() => leadFromDocument(holder), contactRule, key))) return false;
    const freed = new Map(shared.map((key) => [openKey(key), closedKey(key, `${_id.id}`)]));
    const $set = { openContactKey: held.map((key) => freed.get(key) ?? key) };
    await leads.updateOne({ _id, studioId, ...asRead(holder) }, { $set });
    return true;
  };

/** A creation that a lead prevented, and that lead as read. */
interface RefusedCreation {
  readonly creation: Creation;
  readonly holder: LeadDocument;
}

/**
 * Refuses creations because of an open lead, and stores them with it as enquiries, in one write of the lead as read. If
 * the lead has changed since, it may be closed, and the creation starts over. A creation that starts over first finds out
 * whether an earlier attempt has stored an enquiry. Otherwise it could also create a lead, or store the enquiry twice.
 */
function creationRefuser({ leads }: Connection) {
  const writes = requestBatcher<RefusedCreation, Promise<boolean>>(async (requests) => {
    // Only requests that read the same state share a write. In another state, the lead may no longer prevent them.
    const toState = ({ holder: { _id, changes } }: RefusedCreation) => `${keyText(_id)} ${Object(changes).revision}`;
    const byState = Map.groupBy(requests, toState);
    const written = new Map([...byState].map(([state, each]) => [state, storeEnquiries(each)]));
    await Promise.allSettled(written.values());
    return requests.map((request) => written.get(toState(request)) as Promise<boolean>);
  });

  /** Stores creations as enquiries of one lead. Returns whether the lead was still as all of them had read it. */
  async function storeEnquiries(requests: readonly RefusedCreation[]): Promise<boolean> {
    const [{ holder }] = requests as [RefusedCreation];
    let target = enquiryTargetFromDocument(holder);
    let last: EnquiryWrite | null = null;
    for (const { creation } of requests) {
      const write = decideEnquiry(target, creation.lead, creation.keys.idempotencyKey);
      if (write) target = { ...target, ...write, enquiries: write.original.enquiries };
      last = write ?? last;
    }
    if (!last) return true;
    const { studioId, _id } = holder;
    const update = { $set: enquiryDocument(last) } as UpdateFilter<LeadDocument>;
    try {
      return (await leads.updateOne({ studioId, _id, ...asRead(holder) }, update)).matchedCount === 1;
    } catch (error) {
      // A document without room gets no enquiry. The lead is open all the same.
      if (isOfDocument(error)) return true;
      throw error;
    }
  }

  return {
    async refuse(creation: Creation, holder: LeadDocument, deadline: AbortSignal) {
      const outcome = alreadyOpen(holder);
      if (!creation.keepsEnquiry) return outcome;
      creation.attemptedAt.push(holder._id);
      return (await writes.submit({ creation, holder }, deadline)) ? outcome : undefined;
    },

    /** Returns the refusal of an earlier attempt that stored an enquiry; undefined: none did. */
    async refusedBefore({ lead: { studioId }, keys, attemptedAt }: Creation) {
      const found = await leads.find({ studioId, _id: { $in: attemptedAt } }, WITHOUT_HISTORY).toArray();
      const holder = found.find((each) =>
        hasEnquiryKey(enquiryTargetFromDocument(each).enquiries.keys, keys.idempotencyKey),
      );
      return holder && alreadyOpen(holder);
    },
  };
}

/** Inserts documents; returns for each why it was refused, if it was. */
const batchedInserts = ({ leads }: Connection) =>
  requestBatcher<LeadDocument, { readonly refusal?: WriteError | undefined }>(async (documents) => {
    const refusals = await insertEach(leads, documents);
    return documents.map((_, at) => ({ refusal: refusals.find(({ index }) => index === at) }));
  });

/**
 * Finds what conflicts with a new lead: an earlier creation with its idempotency key, or else a lead that holds its
 * contact, as stored.
 *
 * Usually an earlier creation conflicts. If the key has no lead, this reads by contact, and then by key once more. A lead
 * may be committed between these reads, and the caller's own lead must not count as another one. Without the second read
 * by key:
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
 * A crash at any of these points leaves nothing to repair: the one insert has written the lead and its keys, or nothing,
 * and reads write nothing. A retry finds the lead by its key, or creates it.
 */
function conflictReader({ leads }: Connection) {
  const byKey = leadFinder<{ readonly studioId: string; readonly idempotencyKey: string }>(leads, {
    toFilter: (keys) =>
      filterByStudio(keys, (ofStudio) => ({
        'idempotency.key': { $in: ofStudio.map(({ idempotencyKey }) => new UUID(idempotencyKey)) },
      })),
    toNames: ({ studioId, idempotency }) => [`${studioId} ${idempotency.key}`],
    wanted: ({ studioId, idempotencyKey }) => [`${studioId} ${idempotencyKey}`],
  });
  const byContact = leadFinder<{ readonly studioId: string; readonly keys: readonly string[] }>(leads, {
    toFilter: (contacts) =>
      filterByStudio(contacts, (ofStudio) => ({ openContactKey: { $in: ofStudio.flatMap(({ keys }) => keys) } })),
    toNames: ({ studioId, openContactKey }) => [openContactKey].flat().map((key) => `${studioId} ${key}`),
    wanted: ({ studioId, keys }) => keys.map((key) => `${studioId} ${key}`),
  });
  return async (
    lead: Lead,
    { idempotencyKey, contactKeys, fingerprint }: LeadKeys,
    deadline: AbortSignal,
  ): Promise<CreateLeadOutcome | LeadDocument | undefined> => {
    const { studioId } = lead;
    const key = { studioId, idempotencyKey };
    const early = await byKey.submit(key, deadline);
    // A closed lead conflicts with no other lead.
    const readsContact = !early && isOpen(lead.stage);
    const contact = !readsContact
      ? null
      : await byContact.submit({ studioId, keys: contactKeys.map(openKey) }, deadline);
    const stored = early ?? (await byKey.submit(key, deadline));
    if (stored) {
      const earlier = creationFromDocument(stored);
      // The same id: an insert of this call took effect, but its response was lost.
      if ('lead' in earlier && earlier.lead.id === lead.id) return { kind: 'created', lead };
      return replayOutcome(earlier, fingerprint);
    }
    return contact ?? undefined;
  };
}

interface Lookup<Request> {
  toFilter(requests: readonly Request[]): Filter<LeadDocument>;
  /** Returns the names by which a lead is found. */
  toNames(lead: LeadDocument): readonly string[];
  /** Returns names that each identify the requested lead. */
  wanted(request: Request): readonly string[];
  /** The options of the read; default: all except the history. */
  readonly options?: FindOptions;
}

/** Combines reads of single leads. */
export const leadFinder = <Request>(
  leads: Connection['leads'],
  { toFilter, toNames, wanted, options = WITHOUT_HISTORY }: Lookup<Request>,
): Batched<Request, LeadDocument | null> =>
  requestBatcher(
    async (requests) => {
      const found = await leads.find(toFilter(requests), options).toArray();
      const byName = new Map(found.flatMap((lead) => toNames(lead).map((name) => [name, lead])));
      return requests.map((request) => wanted(request).flatMap((name) => byName.get(name) ?? [])[0] ?? null);
    },
    (request) => String(wanted(request)),
  );

/** Groups a filter by studio. Otherwise the database would look up every value in every studio. */
function filterByStudio<Request extends { readonly studioId: string }>(
  requests: readonly Request[],
  wanted: (ofStudio: readonly Request[]) => Filter<LeadDocument>,
): Filter<LeadDocument> {
  const byStudio = Map.groupBy(requests, ({ studioId }) => studioId);
  const filters = [...byStudio].map(([studioId, ofStudio]) => ({ studioId, ...wanted(ofStudio) }));
  return filters.length === 1 && filters[0] ? filters[0] : { $or: filters };
}

/** Returns a function that carries out decisions about leads. */
function leadWriter(connection: Connection) {
  const { leads, indexes } = connection;
  const releaseStaleKeys = staleKeyReleaser(connection);
  const change = changer(connection, leads);
  return <Command extends LeadCommand, Outcome>(decide: Decide<StoredLead, Command, Outcome, LeadWrite>) =>
    (command: Command): Promise<Outcome> => {
      const { studioId, leadId, requestId } = command;
      const _id = leadKey(studioId, leadId);
      let taken: readonly string[] = [];
      return change<Outcome>({
        which: { studioId, _id },
        // Concurrent changes of one lead would conflict and retry until their deadlines.
        mutexKey: keyText(_id),
        requestId,
        async onDuplicate() {
          const openContactKey = { $in: taken.map(openKey) };
          // The lead itself may hold some of the keys, by this change or a concurrent one.
          const found = await leads.find({ studioId, openContactKey }, WITHOUT_HISTORY).toArray();
          const holder = found.find((each) => !_id.id.equals(each._id.id));
          if (!holder || (await releaseStaleKeys(holder, taken))) return undefined;
          return alreadyOpen(holder) as Outcome;
        },
        async decide(found, isApplied) {
          const decision = decide(found && storedLead(found), command, isApplied);
          if (!found || !('write' in decision)) return decision;
          const { outcome, write, events } = decision;
          const where = asRead(found);
          if (!write) return { outcome, where };
          if (write.keys?.isOpen) await indexes.expectValid('leads');
          taken = write.keys?.contactKeys ?? [];
          // If the history cannot grow, an erasure replaces it, because it must not fail.
          const record = write.isErasure ? undefined : ({ kind: 'lead', studioId, id: leadId } as const);
          return { outcome, where, update: createUpdate(leadId, write), events, record };
        },
      });
    };
}

/** The maximum number of names; the older half is evicted at once. */
const MAX_RECENT = 10_000;

/** A bounded set of recently seen names. Only a hint: the database decides. */
export function recentNames() {
  let [recent, older] = [new Set<string>(), new Set<string>()];
  return {
    add(name: string): boolean {
      const isSeen = recent.has(name) || older.has(name);
      recent.add(name);
      if (recent.size >= MAX_RECENT / 2) [recent, older] = [new Set(), recent];
      return isSeen;
    },
  };
}
