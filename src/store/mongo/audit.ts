import { type AuditEvent, MAX_AUDIT_EVENTS, OF_DEPLOYMENT } from '../../domain/audit.ts';
import { type Checked, checkedEvent, readableOrNull } from '../checked.ts';
import { eventOfAct } from '../decisions.ts';
import type { AuditStore, ReportUnreadable } from '../store.ts';
import { recordIn } from './apply-once.ts';
import type { Connection } from './connection.ts';
import { type ConsumersDocument, type HistoryEntry, leadKey, NO_CONSUMERS, READ } from './documents.ts';

const HISTORY = { ...READ, projection: { history: 1 } } as const;

/** Reads the history of a key, and its place in the index of slots. */
const KEY_HISTORY = { ...READ, projection: { slot: 1, history: 1 } } as const;

const KEYS_PER_READ = 50;

const AFTER_ALL_SLOTS = 'g';

/**
 * The audit log in MongoDB. Every document contains its own history, and an event is added in the same write as the
 * change. Neither exists without the other at any moment, so there is nothing to repair after a crash.
 *
 * A separate collection would need a second write in a transaction. A standalone server has no transactions, and on a
 * sharded cluster one would span shards. Without one, a crash in between leaves an event without its change or a change
 * without its event. Events would also have to be ordered by clocks; here their order is that of the writes.
 *
 * The price: a history is bounded, and deleted with its document. An event takes less than 200 bytes, so
 * MAX_AUDIT_EVENTS of them take less than 200 KB of the 16 MB limit of a document; the write that adds one drops the
 * oldest. All other reads of a document leave out its history.
 */
export function mongoAudit({ leads, apiKeys, studios, feed, call }: Connection, report: ReportUnreadable): AuditStore {
  const eventsOf = (history: unknown, subject: Subject) =>
    Array.isArray(history) ? history.flatMap((entry) => readableOrNull(eventOf(entry, subject), report) ?? []) : [];
  return {
    recordAct: (studioId, act, by) =>
      call(async (deadline) => {
        const event = eventOfAct(by, act);
        if (studioId !== null) return recordIn(studios, deadline, { _id: studioId }, event);
        const fresh = { _id: 'consumers', ...NO_CONSUMERS } as const;
        return recordIn<ConsumersDocument>(feed, deadline, { _id: 'consumers' }, event, { fresh });
      }).then(() => {}),

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
