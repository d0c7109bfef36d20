import { BSON, type Filter, type UUID } from 'mongodb';
import { type AuditEvent, MAX_AUDIT_EVENTS, OF_DEPLOYMENT } from '../../domain/audit.ts';
import { type Checked, checkedEvent, readableOrNull } from '../checked.ts';
import { eventOfAct } from '../decisions/decision.ts';
import type { AuditStore } from '../store.ts';
import { recordIn } from './apply-once.ts';
import type { Connection } from './connection.ts';
import {
  AFTER_ALL_SLOTS,
  type ConsumersDocument,
  type HistoryEntry,
  ID_ONLY,
  type LeadDocument,
  type LeadKey,
  leadKey,
  NO_CONSUMERS,
  type OldEventsDocument,
  oldEventsId,
  READ,
} from './documents.ts';

const { EJSON } = BSON;

const HISTORY = { ...READ, projection: { history: 1 } } as const;

/** Reads the history of a key, and its place in the index of slots. */
const KEY_HISTORY = { ...READ, projection: { slot: 1, history: 1 } } as const;

const WITH_EVENTS = { ...READ, projection: { studioId: 1, history: 1, moved: 1 } } as const;

const KEYS_PER_READ = 50;

/**
 * The audit log in MongoDB. Every document contains its own history, to which an event is added in the same write as the change:
 * see docs/explanation/decisions-data.md#the-audit-log. All other reads of a document leave out its history.
 */
export function mongoAudit(connection: Connection): AuditStore {
  const { leads, apiKeys, studios, feed, oldEvents, call, report } = connection;
  const eventsOf = (history: unknown, subject: Subject) =>
    Array.isArray(history) ? history.flatMap((entry) => readableOrNull(eventOf(entry, subject), report) ?? []) : [];
  const walk = historyWalker(connection, eventsOf);
  return {
    recordAct: (studioId, act, by) =>
      call(async (deadline) => {
        const event = { event: eventOfAct(by, act), oldEvents };
        if (studioId !== OF_DEPLOYMENT) return recordIn(studios, deadline, { _id: studioId }, event);
        const fresh = { _id: 'consumers', ...NO_CONSUMERS } as const;
        return recordIn<ConsumersDocument>(feed, deadline, { _id: 'consumers' }, event, { fresh });
      }).then(() => {}),

    walkAuditEvents: (range, after) => call(() => walk(range, after)),

    listAuditEvents: (studioId, leadId) =>
      call(async () => {
        if (leadId !== null) {
          const lead = await leads.findOne({ studioId, _id: leadKey(studioId, leadId) }, HISTORY);
          return eventsOf(lead?.history, { studioId, leadId }).slice(-MAX_AUDIT_EVENTS).toReversed();
        }
        const isOfAll = studioId === OF_DEPLOYMENT;
        const subject = await (isOfAll
          ? feed.findOne({ _id: 'consumers' }, HISTORY)
          : studios.findOne({ _id: studioId }, HISTORY));
        let found = newestOf(placed(eventsOf(subject?.history, { studioId })));
        // A few keys at a time, and of many keys only those with newer events than were found.
        for (let below = AFTER_ALL_SLOTS; ; ) {
          const oldest = found.length === MAX_AUDIT_EVENTS ? found[0] : undefined;
          const time = oldest && { 'history.time': { $gt: new Date(oldest.place) } };
          const filter = { studioId, slot: { $gte: '', $lt: below }, ...time };
          const keys = await apiKeys.find(filter, KEY_HISTORY).sort({ slot: -1 }).limit(KEYS_PER_READ).toArray();
          const read = keys.map(({ _id, history }) => ({ apiKeyId: String(_id), history }));
          found = newestOf([
            // A key that gets another slot meanwhile may be read twice.
            ...found.filter(({ event }) => !read.some(({ apiKeyId }) => apiKeyId === event.apiKeyId)),
            ...read.flatMap(({ apiKeyId, history }) => placed(eventsOf(history, { studioId, apiKeyId }))),
          ]);
          const last = keys.at(-1);
          if (last === undefined || keys.length < KEYS_PER_READ) break;
          below = last.slot;
        }
        return found.map(({ event }) => event).toReversed();
      }),
  };
}

/** The number of documents that a walk examines at a time, and of those with events that it reads, and of events, after which a part ends. */
const MAX_EXAMINED = 2000;
const MAX_DOCUMENTS = 50;
const MIN_EVENTS = 1000;

/** What has a history, in the order of a walk. */
interface Walked {
  readonly collection: Pick<Connection['leads'], 'find' | 'collectionName'>;
  readonly subjectOf: (id: never, studioId: string) => Subject;
}

/**
 * Returns a function that walks all histories by the `_id`s of their documents. A document is read once, so none of its events
 * comes twice, whatever is added to it meanwhile. A position is the place of a collection, and an `_id`.
 */
function historyWalker(
  { feed, studios, apiKeys, leads, oldEvents }: Connection,
  eventsOf: (history: unknown, subject: Subject) => readonly AuditEvent[],
): AuditStore['walkAuditEvents'] {
  const walked = [
    { collection: feed, subjectOf: () => ({ studioId: OF_DEPLOYMENT }) },
    { collection: studios, subjectOf: (studioId: string) => ({ studioId }) },
    { collection: apiKeys, subjectOf: (id: UUID, studioId: string) => ({ studioId, apiKeyId: String(id) }) },
    { collection: leads, subjectOf: ({ studioId, id }: LeadKey) => ({ studioId, leadId: String(id) }) },
  ] as unknown as readonly Walked[];

  return async ({ start, end }, after) => {
    const [, place = 0, id = ''] = /^(\d) (.*)$/.exec(after ?? '') ?? [];
    const { collection, subjectOf } = walked[Number(place)] as Walked;
    const above = id === '' ? {} : { $gt: EJSON.parse(id) };
    const all = (id === '' ? {} : { _id: above }) as Filter<LeadDocument>;
    const examined = await collection.find(all, ID_ONLY).sort({ _id: 1 }).limit(MAX_EXAMINED).toArray();
    const last = examined.at(-1);
    // Not behind the last of them: an engine could look through all leads for some with events.
    const some = { _id: { ...above, $lte: last?._id }, 'history.time': { $gte: start } } as Filter<LeadDocument>;
    const found = last ? await collection.find(some, WITH_EVENTS).sort({ _id: 1 }).limit(MAX_DOCUMENTS).toArray() : [];
    const events: AuditEvent[] = [];
    let furthest = found.length < MAX_DOCUMENTS ? last : undefined;
    for (const each of found) {
      const { _id, studioId, history, moved } = each;
      const [first, next] = [0, moved].map((before) => oldEventsId(collection.collectionName, _id, before));
      // Those of which the document knows are not in its history any more, as it was read.
      const isOld = { _id: { $gte: first, $lt: next }, 'history.time': { $gte: start } } as Filter<OldEventsDocument>;
      const old = moved === undefined ? [] : await oldEvents.find(isOld, READ).sort({ _id: 1 }).toArray();
      const all = [...old.flatMap((one) => one.history), ...(Array.isArray(history) ? history : [])];
      const ofEach = eventsOf(all, subjectOf(_id as never, studioId));
      events.push(...ofEach.filter(({ time }) => time >= start && time < end));
      if (events.length >= MIN_EVENTS || each === found[MAX_DOCUMENTS - 1]) {
        furthest = each;
        break;
      }
    }
    const isEnd = furthest === last && examined.length < MAX_EXAMINED;
    if (!isEnd) return { events, next: `${place} ${EJSON.stringify(furthest?._id, { relaxed: false })}` };
    return { events, next: Number(place) + 1 < walked.length ? `${Number(place) + 1} ` : null };
  };
}

interface Subject {
  readonly studioId: string;
  readonly leadId?: string;
  readonly apiKeyId?: string;
}

function eventOf(entry: HistoryEntry | null, subject: Subject): Checked<AuditEvent> {
  const { action, memberId, caller = null, callId = null, time, from = null, to = null } = Object(entry);
  const actor = { memberId, caller, callId };
  return checkedEvent({ leadId: null, apiKeyId: null, ...subject, action, ...actor, time, from, to });
}

/** An event, and the time by which it is ordered among those of other documents. */
interface PlacedEvent {
  readonly event: AuditEvent;
  readonly place: number;
}

/**
 * Places the events of a document, oldest first. They keep their order even if the writers' clocks disagree: none counts
 * as older than the event before it.
 */
function placed(events: readonly AuditEvent[]): PlacedEvent[] {
  let place = Number.NEGATIVE_INFINITY;
  return events.map((event) => {
    place = Math.max(place, event.time.getTime());
    return { event, place };
  });
}

const newestOf = (events: readonly PlacedEvent[]): PlacedEvent[] =>
  events.toSorted((a, b) => a.place - b.place).slice(-MAX_AUDIT_EVENTS);
