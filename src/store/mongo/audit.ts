import { type Collection, type Filter, MongoServerError, type UpdateFilter, type WithId } from 'mongodb';
import { type Actor, type AuditEvent, MAX_AUDIT_EVENTS } from '../../domain/audit.ts';
import { type Checked, checkedEvent, historyFault, readableOrNull } from '../checked.ts';
import type { AuditStore, ReportUnreadable, UnreadableRecord } from '../store.ts';
import type { Connection } from './connection.ts';
import { type HistoryEntry, leadKey, READ } from './documents.ts';

/** How the events of documents are read: nothing else of them. */
const HISTORY = { ...READ, projection: { history: 1 } } as const;

/** What a server says of a document that has no room for more (the last is FerretDB's), or whose history is no list. */
const REFUSED_HISTORY = new Set([10334, 17419, 285999133, 2, 14]);

/**
 * Who did what, in MongoDB: every document has its own history, which grows in the very write that it tells of. There is no
 * moment at which one of the two is missing, and nothing to repair after a crash.
 *
 * A collection of events would need a second write. Only a transaction makes one of two, which a standalone server does not
 * have, and which spans shards as soon as the two documents do not lie on one; without it, a crash in between leaves an
 * event of what was not done, or what was done without its event, whichever is written first. Nor would a clock tell the
 * order of two events, which here is that of the writes.
 *
 * The price is that a history is bounded, and goes with its document. An event takes less than 200 bytes, so MAX_AUDIT_EVENTS of
 * them take less than 200 KB of the 16 MB that a document may have; the write that adds one drops the oldest. Whoever
 * wants anything else of the document reads it without its history.
 */
export function mongoAudit({ leads, apiKeys, studios, call }: Connection, report: ReportUnreadable): AuditStore {
  const eventsOf = (history: unknown, subject: Subject) =>
    Array.isArray(history) ? history.flatMap((entry) => readableOrNull(eventOf(entry, subject), report) ?? []) : [];
  return {
    listAuditEvents: (studioId, leadId) =>
      call(async () => {
        if (leadId !== null) {
          const lead = await leads.findOne({ studioId, _id: leadKey(studioId, leadId) }, HISTORY);
          return newestFirst([eventsOf(lead?.history, { studioId, leadId })]);
        }
        const studio = await studios.findOne({ _id: studioId }, HISTORY);
        const keys = await apiKeys.find({ studioId }, HISTORY).toArray();
        return newestFirst([
          eventsOf(studio?.history, { studioId }),
          ...keys.map(({ _id, history }) => eventsOf(history, { studioId, apiKeyId: String(_id) })),
        ]);
      }),
  };
}

/** Who did it, as an entry has it. */
export const actor = ({ memberId, caller }: Actor) => ({ memberId, ...(caller && { caller }) });

/** What makes a document's history longer, as a part of an update. */
export const withEvents = (...entries: HistoryEntry[]) => ({
  history: { $each: entries, $slice: -MAX_AUDIT_EVENTS },
});

/**
 * Changes a document that must be changed whatever it holds, and keeps events of it. Where the history takes no more, it
 * is begun anew; where there is no room for that either, it goes, and what it took makes room for the change.
 *
 * @returns whether there was one
 */
export async function updateWithEvents<Document extends { readonly history?: readonly HistoryEntry[] }>(
  collection: Collection<Document>,
  filter: Filter<Document>,
  $set: Partial<Document>,
  ...entries: HistoryEntry[]
): Promise<boolean> {
  const changes = [
    { $set, $push: withEvents(...entries) },
    { $set: { ...$set, history: entries } },
    { $set, $unset: { history: 1 } },
  ];
  for (const change of changes) {
    try {
      return (await collection.updateOne(filter, change as UpdateFilter<Document>)).matchedCount === 1;
    } catch (error) {
      if (!isRefusal(error) || change === changes.at(-1)) throw error;
    }
  }
  return false;
}

/**
 * The document that was not changed, when what the server refused was to add to a history that is no list: trying again would
 * never help.
 */
export async function historyRefusal<Document extends { readonly history?: readonly HistoryEntry[] }>(
  collection: Collection<Document>,
  { _id, ...record }: Pick<UnreadableRecord, 'kind' | 'studioId' | 'id'> & Pick<WithId<Document>, '_id'>,
  error: unknown,
): Promise<UnreadableRecord | undefined> {
  if (!isRefusal(error)) return undefined;
  const found = await collection.findOne({ studioId: record.studioId, _id } as Filter<Document>, HISTORY);
  return found ? historyFault(record.kind, record, found.history) : undefined;
}

const isRefusal = (error: unknown): boolean =>
  error instanceof MongoServerError && REFUSED_HISTORY.has(Number(error.code));

/** What an event is about. */
interface Subject {
  readonly studioId: string;
  readonly leadId?: string;
  readonly apiKeyId?: string;
}

function eventOf(entry: HistoryEntry | null, subject: Subject): Checked<AuditEvent> {
  const { action, memberId, caller = null, time, from = null, to = null } = Object(entry);
  return checkedEvent({ leadId: null, apiKeyId: null, ...subject, action, memberId, caller, time, from, to });
}

/**
 * What happened to one document keeps its order, whatever the clocks of those said who did it: there nothing counts as older
 * than what came before it.
 */
function newestFirst(histories: readonly (readonly AuditEvent[])[]): AuditEvent[] {
  const placed = histories.flatMap((events) => {
    let place = Number.NEGATIVE_INFINITY;
    return events.map((event) => {
      place = Math.max(place, event.time.getTime());
      return { event, place };
    });
  });
  return placed
    .toReversed()
    .sort((a, b) => b.place - a.place)
    .slice(0, MAX_AUDIT_EVENTS)
    .map(({ event }) => event);
}
