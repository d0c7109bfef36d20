import { type AuditEvent, EVENTS_KEPT } from '../../domain/audit.ts';
import type { AuditStore } from '../store.ts';
import type { Connection } from './connection.ts';
import { type HistoryEntry, leadKey } from './documents.ts';

/**
 * Who did what, in MongoDB: every document has its own history, which grows in the very write that it tells of. There is no
 * moment at which one of the two is missing, and nothing to repair after a crash.
 */
export function mongoAudit({ leads, apiKeys, studios, call }: Connection): AuditStore {
  return {
    listAuditEvents: (studioId, leadId) =>
      call(async () => {
        if (leadId !== null) {
          const lead = await leads.findOne({ studioId, _id: leadKey(studioId, leadId) });
          return newestFirst((lead?.history ?? []).map((entry) => eventOf(entry, { studioId, leadId })));
        }
        const studio = await studios.findOne({ _id: studioId }, { projection: { history: 1 } });
        const keys = await apiKeys.find({ studioId }, { projection: { history: 1 } }).toArray();
        return newestFirst([
          ...(studio?.history ?? []).map((entry) => eventOf(entry, { studioId })),
          ...keys.flatMap(({ _id, history = [] }) =>
            history.map((entry) => eventOf(entry, { studioId, apiKeyId: _id.toString() })),
          ),
        ]);
      }),
  };
}

/** What makes a document's history longer by an entry, as a part of an update. */
export const remember = (entry: HistoryEntry) => ({ history: { $each: [entry], $slice: -EVENTS_KEPT } });

function eventOf(
  { action, memberId, time, from, to }: HistoryEntry,
  subject: { readonly studioId: string; readonly leadId?: string; readonly apiKeyId?: string },
): AuditEvent {
  return { leadId: null, apiKeyId: null, ...subject, action, memberId, time, from: from ?? null, to: to ?? null };
}

/** What happened to one document keeps its order, whatever its clock said. */
function newestFirst(events: AuditEvent[]): AuditEvent[] {
  return events
    .toReversed()
    .sort((a, b) => b.time.getTime() - a.time.getTime())
    .slice(0, EVENTS_KEPT);
}
