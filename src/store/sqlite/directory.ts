import type { Repeatable } from '../../domain/audit.ts';
import { type LeadSource, MAX_LEAD_SOURCES, MAX_MEMBERS, type Member, type Studio } from '../../domain/studio.ts';
import { checked, checkedInParts, type RecordType, readableOrNull, type Unchecked } from '../checked.ts';
import {
  decideEnd,
  decideEntry,
  decideStudio,
  type EventsOfEntry,
  memberEvents,
  sourceEvents,
} from '../decisions/directory.ts';
import { readPage } from '../pages.ts';
import type { DirectoryStore, EndStudioOutcome, PutOutcome, StudioStore } from '../port/directory.ts';
import { checkedStudio, LEAD_SOURCE, MEMBER, STUDIO } from '../records.ts';
import type { Connection } from './connection.ts';
import { LEAD_SOURCES, rowMapping, STUDIOS } from './record-rows.ts';

export function sqliteDirectory(connection: Connection): DirectoryStore {
  const { prepare, report } = connection;
  const members = entriesIn(connection, MEMBER, MAX_MEMBERS, ({ role }) => role);
  const sources = entriesIn(connection, LEAD_SOURCE, MAX_LEAD_SOURCES, ({ name, enabled }) => ({ name, enabled }));
  const selectSources = LEAD_SOURCES.query(prepare, 'WHERE studio_id = ? AND id > ? ORDER BY id LIMIT ?');
  return {
    ...sqliteStudios(connection),

    putMember: (member, by) => members.put(member, by, memberEvents(by, member.id, member.role)),

    findMember: async (studioId, memberId) => members.find(studioId, memberId),

    removeMember: (studioId, memberId, by) => members.remove(studioId, memberId, by, memberEvents(by, memberId)),

    putLeadSource: (source, by) => sources.put(source, by, sourceEvents(by, source.id, source)),

    findLeadSource: async (studioId, sourceId) => sources.find(studioId, sourceId),

    removeLeadSource: (studioId, sourceId, by) => sources.remove(studioId, sourceId, by, sourceEvents(by, sourceId)),

    async listLeadSources(studioId, first, limit) {
      const read = (after: string | null, count: number) => selectSources.all(studioId, after ?? '', count);
      const check = (source: Unchecked<LeadSource>) => checked(LEAD_SOURCE, source);
      return readPage({ read, toId, check }, { after: first, limit }, report);
    },
  };
}

const toId = ({ id }: { readonly id: unknown }) => id as string;

type Ending = [status: string, members: number, sources: number];

function sqliteStudios({ prepare, applyOnce, report }: Connection): StudioStore {
  const select = STUDIOS.query(prepare, 'WHERE id = ?');
  const selectPage = STUDIOS.query(prepare, 'WHERE id > ? ORDER BY id LIMIT ? + 0');
  const insert = prepare("INSERT INTO studios (id, status) VALUES (?, '')");
  const selectEnding = prepare<Ending>(`
    SELECT status, (SELECT count(*) FROM members WHERE studio_id = studios.id),
      (SELECT count(*) FROM lead_sources WHERE studio_id = studios.id)
    FROM studios WHERE id = ?`);
  const endings = [
    "UPDATE studios SET status = 'ended', retention = NULL WHERE id = ?",
    'DELETE FROM members WHERE studio_id = ?',
    'DELETE FROM lead_sources WHERE studio_id = ?',
  ].map((sql) => prepare(sql));
  return {
    endStudio: (studioId, by) =>
      applyOnce<Ending | undefined, 'end', EndStudioOutcome>({
        subject: { studioId },
        read: () => selectEnding.get(studioId),
        decide(row) {
          if (!row) return decideEnd(null, by);
          const [status, members, sources] = row;
          return decideEnd({ status, members, sources }, by);
        },
        write: () => void endings.map((each) => each.run(studioId)),
      }),

    putStudio: (put, by) =>
      applyOnce({
        subject: { studioId: put.id },
        requestId: by.requestId,
        read: () => select.get(put.id),
        decide(stored, isApplied) {
          const found = stored && { ...stored, studio: checkedStudio(stored, report) };
          return decideStudio(found ?? null, put, by, isApplied);
        },
        write({ formerRegions, ...fields }, stored) {
          if (!stored) insert.run(put.id);
          const { set, values } = STUDIOS.written({ ...fields, ...(formerRegions.length > 0 && { formerRegions }) });
          if (set.length > 0) prepare(`UPDATE studios SET ${set} WHERE id = :id`).run({ ...values, id: put.id });
          return undefined;
        },
      }),

    async findStudio(studioId) {
      const found = select.get(studioId);
      return found ? checkedStudio(found, report) : null;
    },

    async listStudios(first, limit) {
      const read = (after: string | null, count: number) => selectPage.all(after ?? '', count);
      const check = (studio: Unchecked<Studio>) => checkedInParts(STUDIO, studio, report);
      return readPage({ read, toId, check }, { after: first, limit }, report);
    },
  };
}

/** Returns the methods for the members or the sources of a studio. @param storedIn returns an entry without its ids */
function entriesIn<Entry extends Member | LeadSource>(
  { prepare, applyOnce, report }: Connection,
  type: RecordType<Entry>,
  max: number,
  storedIn: (entry: Unchecked<Entry>) => unknown,
) {
  const { table } = type;
  const { query, into, written } = rowMapping(type);
  const selectStudio = prepare('SELECT status FROM studios WHERE id = ?');
  const select = query(prepare, 'WHERE studio_id = ? AND id = ?');
  const put = prepare(`INSERT OR REPLACE ${into()}`);
  const remove = prepare(`DELETE FROM ${table} WHERE studio_id = ? AND id = ?`);
  const count = prepare<[count: number]>(`SELECT count(*) FROM ${table} WHERE studio_id = ?`);
  const checkedOrNull = (entry: Unchecked<Entry> | undefined) =>
    entry ? readableOrNull(checked(type, entry), report) : null;
  return {
    put: (entry: Entry, { requestId }: Repeatable, createEvents: EventsOfEntry) =>
      applyOnce<Unchecked<Entry> | undefined, 'put', PutOutcome>({
        subject: { studioId: entry.studioId },
        requestId,
        read: () => select.get(entry.studioId, entry.id),
        decide(stored, isApplied) {
          const isFull = !stored && (count.get(entry.studioId)?.[0] ?? 0) >= max;
          const status = selectStudio.get(entry.studioId)?.[0] ?? null;
          return decideEntry({ status, before: stored && storedIn(stored), isFull }, createEvents, isApplied);
        },
        write: () => void put.run(written(entry).values),
      }),

    find: (studioId: string, id: string) => checkedOrNull(select.get(studioId, id)),

    remove: (studioId: string, id: string, { requestId }: Repeatable, createEvents: EventsOfEntry) =>
      applyOnce<Unchecked<Entry> | undefined, 'remove', Entry | null>({
        subject: { studioId },
        requestId,
        read: () => select.get(studioId, id),
        decide(stored, isApplied) {
          if (isApplied) return { outcome: null };
          return {
            outcome: checkedOrNull(stored),
            write: stored ? 'remove' : null,
            events: stored ? createEvents(storedIn(stored)) : [],
          };
        },
        write: () => void remove.run(studioId, id),
      }),
  };
}
