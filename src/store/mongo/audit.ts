import { BSON, type Collection, type Filter, type UUID } from 'mongodb';
import { type AuditEvent, MAX_AUDIT_EVENTS, OF_DEPLOYMENT } from '../../domain/audit.ts';
import { type Checked, checked, readableOrNull } from '../checked.ts';
import { eventOfAct } from '../decisions/decision.ts';
import type { AuditStore } from '../port/audit.ts';
import { AUDIT_EVENT } from '../records.ts';
import { changer, recorded } from './apply-once.ts';
import type { Connection } from './connection.ts';
import { AFTER_ALL_SLOTS, fieldsIn, NO_CONSUMERS, type StudioDocument } from './documents.ts';
import { type HistoryEntry, MOVED_AT_ONCE, type OldEventsDocument, oldEventsId } from './history.ts';
import type { LeadDocument } from './lead-documents.ts';
import { ID_ONLY, type LeadKey, leadKey, READ } from './queries.ts';

const { EJSON } = BSON;

const HISTORY = { ...READ, projection: { history: 1 } } as const;

/** Reads the history of a key, and its position in the index of slots. */
const KEY_HISTORY = { ...READ, projection: { slot: 1, history: 1 }, sort: { slot: -1 } } as const;

const WITH_EVENTS = { ...READ, projection: { studioId: 1, history: 1, moved: 1 }, sort: { _id: 1 } } as const;

const KEYS_PER_READ = 50;

/**
 * The audit log in MongoDB. Every document contains its own history. A change adds its event to it in the same write:
 * see docs/explanation/decisions-data.md#the-audit-log. All other reads of a document leave out its history.
 */
export function mongoAudit(connection: Connection): AuditStore {
  const { leads, apiKeys, studios, feed, call, report } = connection;
  const readEvents = (history: unknown, subject: Subject) =>
    Array.isArray(history) ? history.flatMap((entry) => readableOrNull(readEvent(entry, subject), report) ?? []) : [];
  const [changeFeed, changeStudio] = [changer(connection, feed), changer(connection, studios)];
  const walk = historyWalker(connection, readEvents);
  return {
    async recordAct(studioId, act, by) {
      const event = eventOfAct(by, act);
      const fresh = { _id: 'consumers', ...NO_CONSUMERS } as const;
      if (studioId === OF_DEPLOYMENT) await changeFeed({ which: { _id: 'consumers' }, ...recorded(event, fresh) });
      else await changeStudio({ which: { _id: studioId }, ...recorded<StudioDocument>(event) });
    },

    walkAuditEvents: (range, after) => call(() => walk(range, after)),

    listAuditEvents: (studioId, leadId) =>
      call(async () => {
        if (leadId !== null) {
          const lead = await leads.findOne({ studioId, _id: leadKey(studioId, leadId) }, HISTORY);
          return readEvents(lead?.history, { studioId, leadId }).slice(-MAX_AUDIT_EVENTS).toReversed();
        }
        const isOfDeployment = studioId === OF_DEPLOYMENT;
        const subject = await (isOfDeployment
          ? feed.findOne({ _id: 'consumers' }, HISTORY)
          : studios.findOne({ _id: studioId }, HISTORY));
        let found = selectNewest(ordered(readEvents(subject?.history, { studioId })));
        // Reads a few keys at a time, and once the list is full, only keys with newer events.
        for (let below = AFTER_ALL_SLOTS; ; ) {
          const oldest = found.length === MAX_AUDIT_EVENTS ? found[0] : undefined;
          const time = oldest && { 'history.time': { $gt: new Date(oldest.order) } };
          const filter = { studioId, slot: { $gte: '', $lt: below }, ...time };
          const keys = await apiKeys.find(filter, { ...KEY_HISTORY, limit: KEYS_PER_READ }).toArray();
          const read = keys.map(({ _id, history }) => ({ apiKeyId: String(_id), history }));
          found = selectNewest([
            // A key that gets another slot meanwhile may be read twice.
            ...found.filter(({ event }) => !read.some(({ apiKeyId }) => apiKeyId === event.apiKeyId)),
            ...read.flatMap(({ apiKeyId, history }) => ordered(readEvents(history, { studioId, apiKeyId }))),
          ]);
          const last = keys.at(-1);
          if (last === undefined || keys.length < KEYS_PER_READ) break;
          below = last.slot;
        }
        return found.map(({ event }) => event).toReversed();
      }),
  };
}

/** Limits of a walk: documents examined at a time, documents with events read at a time, and events after which a part ends. */
const MAX_EXAMINED = 2000;
const MAX_DOCUMENTS = 50;
const MIN_EVENTS = 1000;

/** The maximum number of documents with moved events that are read at a time. */
const MAX_OLD = MIN_EVENTS / MOVED_AT_ONCE;

/** A collection of documents with histories. */
interface Walked {
  readonly collection: Connection['leads'];
  readonly toSubject: (id: never, studioId: string) => Subject;
}

/**
 * Returns a function that walks all histories by the `_id`s of their documents. A position names a collection and an
 * `_id`, up to which all events were returned; with a number, only that many of the document's moved events. A history is
 * read once, after all events that were moved out of it. No event is therefore repeated or missed, whatever is added or
 * moved meanwhile.
 */
function historyWalker(
  { feed, studios, apiKeys, leads, oldEvents }: Connection,
  readEvents: (history: unknown, subject: Subject) => readonly AuditEvent[],
): AuditStore['walkAuditEvents'] {
  const walked = [
    { collection: feed, toSubject: () => ({ studioId: OF_DEPLOYMENT }) },
    { collection: studios, toSubject: (studioId: string) => ({ studioId }) },
    { collection: apiKeys, toSubject: (id: UUID, studioId: string) => ({ studioId, apiKeyId: String(id) }) },
    { collection: leads, toSubject: ({ studioId, id }: LeadKey) => ({ studioId, leadId: String(id) }) },
  ] as unknown as readonly Walked[];

  /**
   * Reads the next events of a document: all the rest, unless too many were moved out of its history.
   *
   * @param from the number of moved events that were returned already
   * @param enough the number of events at which a part ends
   * @returns `moved`: the number of moved events returned so far; null: the document has no further events
   */
  async function eventsIn(
    { collection, toSubject }: Walked,
    { _id, studioId, history, moved }: LeadDocument,
    { start, end }: { readonly start: Date; readonly end: Date },
    { from, enough }: { readonly from: number; readonly enough: number },
  ) {
    const read = (entries: unknown) =>
      readEvents(entries, toSubject(_id as never, studioId)).filter(({ time }) => time >= start && time < end);
    // Moved events that the document knows of are no longer in its history as read.
    const [$gte, $lt] = [from, moved].map((number) => oldEventsId(collection.collectionName, _id, number));
    const old = moved === undefined ? NONE : await nextSince(start, oldEvents, { _id: { $gte, $lt } }, MAX_OLD);
    const events = old.found.flatMap((each) => read(each.history));
    if (old.isEnd && events.length < enough) return { events: [...events, ...read(history)], moved: null };
    return { events, moved: Number(String(old.furthest).slice(-9)) + MOVED_AT_ONCE };
  }

  return async (range, after) => {
    const [, collection = 0, moved, id = ''] = /^(\d) (?:(\d+) )?(.*)$/.exec(after ?? '') ?? [];
    const current = walked[Number(collection)] as Walked;
    const ids = id !== '' && { _id: { [moved === undefined ? '$gt' : '$gte']: EJSON.parse(id) } };
    const { found, furthest, isEnd } = await nextSince(range.start, current.collection, { ...ids }, MAX_DOCUMENTS);
    const events: AuditEvent[] = [];
    for (const each of found) {
      const text = idText(each._id);
      const from = text === id ? Number(moved) : 0;
      const more = await eventsIn(current, each, range, { from, enough: MIN_EVENTS - events.length });
      events.push(...more.events);
      if (more.moved !== null) return { events, next: `${collection} ${more.moved} ${text}` };
      if (events.length >= MIN_EVENTS) return { events, next: `${collection} ${text}` };
    }
    if (!isEnd) return { events, next: `${collection} ${idText(furthest)}` };
    return { events, next: Number(collection) + 1 < walked.length ? `${Number(collection) + 1} ` : null };
  };
}

const idText = (id: unknown): string => EJSON.stringify(id, { relaxed: false });

const NONE = { found: [], furthest: undefined, isEnd: true } as const;

/** Reads the next documents with events since a time. Also returns the `_id` up to which there are no others. */
async function nextSince<Schema extends LeadDocument | OldEventsDocument>(
  start: Date,
  collection: Collection<Schema>,
  some: { readonly _id?: object },
  limit: number,
) {
  const ids = { ...ID_ONLY, sort: { _id: 1 }, limit: MAX_EXAMINED } as const;
  const examined = await collection.find(some as Filter<Schema>, ids).toArray();
  const last = examined.at(-1)?._id;
  if (last === undefined) return NONE;
  // Bounded by the last one, because an engine could search all leads for some with events.
  const filter = { _id: { ...some._id, $lte: last }, 'history.time': { $gte: start } } as unknown as Filter<Schema>;
  const found = await collection.find(filter, { ...WITH_EVENTS, limit }).toArray();
  const isFull = found.length === limit;
  const isEnd = !isFull && examined.length < MAX_EXAMINED;
  return { found, furthest: isFull ? found.at(-1)?._id : last, isEnd };
}

interface Subject {
  readonly studioId: string;
  readonly leadId?: string;
  readonly apiKeyId?: string;
}

function readEvent(entry: HistoryEntry | null, subject: Subject): Checked<AuditEvent> {
  return checked(AUDIT_EVENT, { ...fieldsIn(AUDIT_EVENT, Object(entry)), leadId: null, apiKeyId: null, ...subject });
}

/** An event with the time that orders it among events of other documents. */
interface OrderedEvent {
  readonly event: AuditEvent;
  readonly order: number;
}

/**
 * Orders the events of a document, oldest first. They keep their order even if the writers' clocks disagree: none
 * counts as older than the event before it.
 */
function ordered(events: readonly AuditEvent[]): OrderedEvent[] {
  let order = Number.NEGATIVE_INFINITY;
  return events.map((event) => {
    order = Math.max(order, event.time.getTime());
    return { event, order };
  });
}

const selectNewest = (events: readonly OrderedEvent[]): OrderedEvent[] =>
  events.toSorted((a, b) => a.order - b.order).slice(-MAX_AUDIT_EVENTS);
