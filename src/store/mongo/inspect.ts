import { isDeepStrictEqual } from 'node:util';
import { Binary, type Db, type Document, MongoError } from 'mongodb';
import { OF_DEPLOYMENT } from '../../domain/audit.ts';
import { isOpen } from '../../domain/lead.ts';
import { checkedListedStudio, idOrNone, isTime, nameOfRecord } from '../checked.ts';
import {
  FAULTS,
  faultsOfDelivery,
  faultsOfEpoch,
  faultsOfLead,
  faultsOfSlot,
  type InspectedPage,
  type Inspection,
  inspectionOf,
  type OnPage,
  unreadable,
  unreadableBy,
  type Wrong,
  wrongIf,
} from '../damage.ts';
import { hasKey } from '../decisions/leads.ts';
import { StoreUnavailable } from '../store.ts';
import { eventOf } from './audit.ts';
import { withSlowClient } from './connection.ts';
import { checkedConsumers } from './distribution.ts';
import {
  type ApiKeyDocument,
  apiKeyOf,
  type Changeable,
  type ConsumersDocument,
  claimsDocument,
  closedClaim,
  contactKeysIn,
  creationOf,
  type DeliveryDocument,
  enquiredLeadOf,
  erasedClaim,
  erasedLeadOf,
  formerKeysIn,
  ID_ONLY,
  isErased,
  type LeadDocument,
  leadOf,
  MOVED_AT_ONCE,
  memberOf,
  type OldEventsDocument,
  oldEventsId,
  openClaim,
  PERSONAL,
  READ,
  type RequestDocument,
  recordOf,
  type StudioDocument,
  sourceOf,
  studioIn,
} from './documents.ts';
import { isPlainObject } from './marks.ts';
import { WrongServer } from './reconnecting-client.ts';
import { requestOf } from './request-log.ts';

/** Below each `_id` that this service writes: a comparison finds those of one type only. */
const TEXTS = '';
const OBJECTS = {};
const UUIDS = new Binary(Buffer.alloc(0));

/** The number of documents that are read at a time; that of a studio may be large. */
const PAGE = 200;
const STUDIOS_PAGE = 20;

/**
 * Reads all documents of a database, and says what cannot be in it. What is written before what refers to it is read after that, and
 * what looks wrong is read again before it is told: so nothing does that is written meanwhile. Writes nothing.
 *
 * @throws StoreUnavailable
 */
export async function inspectMongo(url: string, onPage: OnPage): Promise<Inspection> {
  try {
    return await withSlowClient(url, undefined, (database) => inspectionOf(pagesOfDatabase(database), onPage));
  } catch (error) {
    if (!(error instanceof MongoError) && !(error instanceof WrongServer)) throw error;
    throw new StoreUnavailable('MongoDB does not answer', error);
  }
}

async function* pagesOfDatabase(database: Db): AsyncGenerator<InspectedPage> {
  yield* pagesOf(database, 'studios', TEXTS, faultsOfStudios, STUDIOS_PAGE);
  yield* pagesOf(database, 'apiKeys', UUIDS, faultsOfKeys);
  yield* pagesOf(database, 'leads', OBJECTS, faultsOfLeads);
  yield* pagesOf(database, 'oldEvents', TEXTS, faultsOfOldEvents);
  yield* pagesOf(database, 'feed', TEXTS, faultsOfFeed);
  yield* pagesOf(database, 'deliveries', OBJECTS, faultsOfDeliveries);
  yield* pagesOf(database, 'requests', OBJECTS, faultsOfRequests);
}

async function* pagesOf<Schema>(
  database: Db,
  name: string,
  below: unknown,
  faultsOf: (found: readonly Schema[], database: Db) => Promise<Wrong[]>,
  size = PAGE,
): AsyncGenerator<InspectedPage> {
  for (let after = below, isEnd = false; !isEnd; ) {
    const read = async (range: object, limit: number): Promise<Schema[]> => {
      const where = { _id: { $gt: after, ...range } } as object;
      return database.collection(name).find(where, READ).sort({ _id: 1 }).limit(limit).toArray() as Promise<never[]>;
    };
    const found = await read({}, size);
    const last = (found.at(-1) as Document | undefined)?._id;
    const suspect = await faultsOf(found, database);
    const again = suspect.length > 0 ? await faultsOf(await read({ $lte: last }, 0), database) : [];
    yield {
      records: found.length,
      wrong: suspect.filter((each) => again.some((other) => isDeepStrictEqual(each, other))),
    };
    isEnd = found.length < size;
    after = last;
  }
}

const ofEach = async <Each>(found: readonly Each[], faultsOf: (each: Each) => Promise<Wrong[]>): Promise<Wrong[]> =>
  (await Promise.all(found.map(faultsOf))).flat();

function faultsOfStudios(found: readonly StudioDocument[], database: Db): Promise<Wrong[]> {
  const feed = database.collection<ConsumersDocument>('feed');
  return ofEach(found, async (studio) => {
    const { _id: id, members, sources, isTest } = studio;
    const isUnmarked = isTest && !(await feed.findOne({ _id: 'consumers', hasTestStudios: true }, ID_ONLY));
    return [
      ...unreadableBy((report) => checkedListedStudio(studioIn(studio), report)),
      ...Object.keys(Object(members)).flatMap((member) => unreadableBy(() => memberOf(studio, member))),
      ...Object.keys(Object(sources)).flatMap((source) => unreadableBy(() => sourceOf(studio, source))),
      ...wrongIf(isUnmarked, FAULTS.tests, idOrNone(id)),
      ...(await faultsOfHistory(studio, { collection: 'studios', kind: 'studio', studioId: id }, database)),
    ];
  });
}

/** Returns a function that tells whether a studio is there; of some records that were stored after it. */
async function studiosOf(found: readonly { readonly studioId: string }[], database: Db) {
  const $in = [...new Set(found.map(({ studioId }) => studioId))].filter((id) => typeof id === 'string');
  const there = await database.collection<StudioDocument>('studios').find({ _id: { $in } }, ID_ONLY).toArray();
  return (id: unknown): boolean => there.some(({ _id }) => _id === id);
}

async function faultsOfKeys(found: readonly ApiKeyDocument[], database: Db): Promise<Wrong[]> {
  const hasStudio = await studiosOf(found, database);
  return ofEach(found, async (key) => {
    const { studioId, slot, revokedAt } = key;
    const id = String(key._id);
    return [
      ...unreadableBy(() => apiKeyOf(key)),
      ...faultsOfSlot({ slot, id, studioId }, revokedAt !== null),
      ...wrongIf(!hasStudio(studioId), FAULTS.ofNoStudio, nameOfRecord({ studioId, id })),
      ...(await faultsOfHistory(key, { collection: 'apiKeys', kind: 'API key', studioId, apiKeyId: id }, database)),
    ];
  });
}

async function faultsOfLeads(found: readonly LeadDocument[], database: Db): Promise<Wrong[]> {
  const hasStudio = await studiosOf(found, database);
  return ofEach(found, async (document) => {
    const { studioId } = document._id;
    const leadId = String(document._id.id);
    const lead = isErased(document) ? erasedLeadOf(document) : enquiredLeadOf(document);
    const changes: unknown = document.changes;
    const { revision = 0, since, kinds = {} } = isPlainObject(changes) ? changes : { revision: changes ?? null };
    return [
      ...unreadableBy(
        () => lead,
        (report) => recordOf(document, report),
        () => creationOf(document),
      ),
      ...faultsOfLead({
        lead: lead as ReturnType<typeof erasedLeadOf>,
        isClaimed: isErased(document) || isClaimed(document),
        hasPersonalData: isErased(document) && hasPersonalData(document),
        idempotencyKey: String(Object(document.idempotency).key),
        enquiries: Object(document.original).enquiries,
        mark: { revision, since, kinds },
      }),
      ...wrongIf(
        isErased(document) && document.studioId !== studioId,
        unreadable('lead', 'studioId'),
        nameOfRecord({ studioId, id: leadId }),
      ),
      ...wrongIf(!hasStudio(studioId), FAULTS.ofNoStudio, nameOfRecord({ studioId, id: leadId })),
      ...(await faultsOfHistory(document, { collection: 'leads', kind: 'lead', studioId, leadId }, database)),
    ];
  });
}

/** Whether a lead has the claims that this service writes for its stage. */
function isClaimed(document: LeadDocument): boolean | undefined {
  const { _id, openContactKey, stage, contactRule } = document;
  const lead = leadOf(document);
  const isFreed = (key: string) => isOpen(stage) && !hasKey(lead, contactRule, key);
  const freed = new Map(
    contactKeysIn(openContactKey)
      .filter(isFreed)
      .map((key) => [closedClaim(key, String(_id.id)), openClaim(key)]),
  );
  const stored = ([openContactKey].flat() as string[]).map((claim) => freed.get(claim) ?? claim);
  const [contactKeys, formerKeys] = [contactKeysIn(stored), formerKeysIn(stored)];
  if (contactKeys.length + formerKeys.length < stored.length) return undefined;
  const claims = { contactKeys, formerKeys, isOpen: isOpen(stage), regionCode: null };
  const { openContactKey: written } = claimsDocument(String(_id.id), claims);
  return contactKeys.length > 0 && isDeepStrictEqual(stored.toSorted(), [...written].toSorted());
}

const hasPersonalData = (document: LeadDocument): boolean =>
  document.openContactKey !== erasedClaim(String(document._id.id)) ||
  Object.keys(PERSONAL).some((path) => {
    const value = path.split('.').reduce<unknown>((within, name) => Object(within)[name], document);
    return value !== undefined;
  });

/** What a history is of. */
interface Subject {
  readonly collection: string;
  readonly kind: Parameters<typeof unreadable>[0];
  readonly studioId: string;
  readonly leadId?: string;
  readonly apiKeyId?: string;
}

async function faultsOfHistory(
  { _id, history = [], appliedRequests = [], moved = 0 }: Changeable & { readonly _id: unknown },
  { collection, kind, ...subject }: Subject,
  database: Db,
): Promise<Wrong[]> {
  const { studioId, leadId, apiKeyId } = subject;
  const record = kind === 'studio' ? idOrNone(studioId) : nameOfRecord({ studioId, id: leadId ?? apiKeyId ?? '' });
  const [$gte, $lt] = [0, moved].map((place) => oldEventsId(collection, _id, place)) as [string, string];
  // They are stored apart before the document counts them.
  const oldEvents = database.collection<OldEventsDocument>('oldEvents');
  const stored = moved === 0 ? 0 : await oldEvents.countDocuments({ _id: { $gte, $lt } });
  return [
    ...eventsIn(history).flatMap((entry) => unreadableBy(() => eventOf(entry, subject))),
    ...wrongIf(!Array.isArray(history), unreadable(kind, 'history'), record),
    ...wrongIf(!Array.isArray(appliedRequests), unreadable(kind, 'appliedRequests'), record),
    ...wrongIf(stored * MOVED_AT_ONCE !== moved, FAULTS.lostEvents, record),
  ];
}

const eventsIn = (history: unknown): readonly Parameters<typeof eventOf>[0][] =>
  Array.isArray(history) ? history : [];

const faultsOfOldEvents = async (found: readonly OldEventsDocument[]): Promise<Wrong[]> =>
  found.flatMap(({ history }) => {
    const all = eventsIn(history).flatMap((entry) => unreadableBy(() => eventOf(entry, { studioId: OF_DEPLOYMENT })));
    return [...all, ...wrongIf(!Array.isArray(history), FAULTS.lostEvents, 'old events')];
  });

const faultsOfFeed = (found: readonly (Document & ConsumersDocument)[], database: Db): Promise<Wrong[]> =>
  ofEach(found, async (document) => {
    const { list, next, epoch = 0, restoredTo = null, time } = document;
    if (String(document._id) === 'retention') return wrongIf(!isTime(time), FAULTS.retention, 'retention');
    const consumers = Array.isArray(list) ? list.map((each) => Object(each)) : [];
    const isShared = ({ number, name }: Document) =>
      !(number < next) || consumers.filter((other) => other.number === number || other.name === name).length > 1;
    return [
      ...wrongIf(!Array.isArray(list), unreadable('consumer', 'list'), 'feed'),
      ...consumers.flatMap((each) => [
        ...unreadableBy((report) => void checkedConsumers([each], report)),
        ...wrongIf(isShared(each), FAULTS.consumer, `number ${Number(each.number)}`),
      ]),
      ...faultsOfEpoch({ epoch, restoredTo }),
      ...(await faultsOfHistory(document, { collection: 'feed', kind: 'consumer', studioId: OF_DEPLOYMENT }, database)),
    ];
  });

/** One without its lead, or its consumer, goes with a poll. */
async function faultsOfDeliveries(found: readonly DeliveryDocument[], database: Db): Promise<Wrong[]> {
  const $in = found.map(({ _id: { studioId, id } }) => ({ studioId, id }));
  // Only now: a delivery is of a state that its lead has.
  const revision = { ...READ, projection: { 'changes.revision': 1 } };
  const leads = await database.collection<LeadDocument>('leads').find({ _id: { $in } }, revision).toArray();
  const nameOf = ({ studioId, id }: LeadDocument['_id']) => nameOfRecord({ studioId, id: String(id) });
  const revisions = new Map(leads.map(({ _id, changes }) => [nameOf(_id), Object(changes).revision ?? 0]));
  return found.flatMap(({ _id, consumer, studioId, reason, ...delivery }) => {
    const record = `${nameOf(_id)} for consumer ${Number(_id.consumer)}`;
    // It is found by either.
    const isOther = consumer !== _id.consumer || studioId !== _id.studioId;
    if (isOther) return [{ fault: FAULTS.delivery, record }];
    return faultsOfDelivery(record, { ...delivery, reason, leadRevision: revisions.get(nameOf(_id)) });
  });
}

const faultsOfRequests = async (found: readonly RequestDocument[]): Promise<Wrong[]> =>
  found.flatMap((each) => unreadableBy(() => requestOf(each)));
