import type { Filter, UpdateFilter } from 'mongodb';
import type { Repeatable } from '../../domain/audit.ts';
import { type LeadSource, MAX_LEAD_SOURCES, MAX_MEMBERS } from '../../domain/studio.ts';
import { type Checked, checkedInParts, readableOrNull } from '../checked.ts';
import {
  decideEnd,
  decideEntry,
  decideStudio,
  type EndingStudio,
  type EventsOfEntry,
  memberEvents,
  sourceEvents,
} from '../decisions/directory.ts';
import { readPage } from '../pages.ts';
import type { DirectoryStore, EndStudioOutcome, PutOutcome, PutStudioOutcome } from '../port/directory.ts';
import { checkedStudio, STUDIO } from '../records.ts';
import { changer } from './apply-once.ts';
import type { StudioReads } from './collections.ts';
import type { Connection } from './connection.ts';
import {
  AFTER_ALL_STUDIOS,
  FIELDS_OF_1_2,
  fieldsIn,
  findEntry,
  readMember,
  readSource,
  STUDIO_FIELDS,
  type StudioDocument,
} from './documents.ts';
import { ID_ONLY, READ } from './queries.ts';

export function mongoDirectory(connection: Connection, reads: StudioReads): DirectoryStore {
  const { studios, call, report } = connection;
  const members = entryStore(connection, reads, { list: 'members', max: MAX_MEMBERS, entryIn: readMember });
  const sources = entryStore(connection, reads, { list: 'sources', max: MAX_LEAD_SOURCES, entryIn: readSource });

  return {
    putStudio: studioPutter(connection),

    endStudio: studioEnder(connection),

    findStudio: (studioId) =>
      call(async (deadline) => {
        const found = await reads.submit({ studioId }, deadline);
        return found && checkedStudio(fieldsIn(STUDIO, found), report);
      }),

    listStudios: (first, limit) =>
      call(() => {
        const read = (after: string | null, count: number) => {
          const _id = { $gt: after ?? '', $lt: AFTER_ALL_STUDIOS };
          return studios
            .find({ _id }, { ...READ, projection: STUDIO_FIELDS, sort: { _id: 1 }, limit: count })
            .toArray();
        };
        const check = (document: StudioDocument) => checkedInParts(STUDIO, fieldsIn(STUDIO, document), report);
        return readPage({ read, toId: ({ _id }) => _id, check }, { after: first, limit }, report);
      }),

    putMember: ({ studioId, id, role }, by) =>
      members.put({ studioId, id, requestId: by.requestId }, role, memberEvents(by, id, role)),

    findMember: members.find,

    removeMember: (studioId, id, by) => members.remove({ studioId, id, requestId: by.requestId }, memberEvents(by, id)),

    putLeadSource({ studioId, id, name, enabled }, by) {
      const value = { name, enabled };
      return sources.put({ studioId, id, requestId: by.requestId }, value, sourceEvents(by, id, value));
    },

    findLeadSource: sources.find,

    removeLeadSource: (studioId, id, by) =>
      sources.remove({ studioId, id, requestId: by.requestId }, sourceEvents(by, id)),

    listLeadSources: (studioId, after, limit) =>
      call(async () => {
        const studio = await studios.findOne({ _id: studioId }, { ...READ, projection: { sources: 1 } });
        if (!studio) return { records: [], next: null, skipped: 0 };
        const ids = Object.keys(Object(studio.sources)).sort();
        const read = (position: string | null, count: number) =>
          ids.slice(position === null ? 0 : ids.findLastIndex((id) => id <= position) + 1).slice(0, count);
        const check = (id: string) => readSource(studio, id) as Checked<LeadSource>;
        return readPage({ read, toId: (id) => id, check }, { after, limit }, report);
      }),
  };
}

function studioPutter(connection: Connection): DirectoryStore['putStudio'] {
  const change = changer(connection, connection.studios);
  return (put, by) =>
    change<PutStudioOutcome>({
      which: { _id: put.id },
      fields: STUDIO_FIELDS,
      requestId: by.requestId,
      async decide(found, isApplied) {
        const studio = found && fieldsIn(STUDIO, found);
        const stored = studio && { ...studio, studio: checkedStudio(studio, connection.report) };
        const decision = decideStudio(stored, put, by, isApplied);
        if (!('write' in decision) || !decision.write) return decision as { readonly outcome: PutStudioOutcome };
        const { outcome, events } = decision;
        const { formerRegions, ...fields } = decision.write;
        if (!found) {
          const empty = { regionCode: null, quotaLimit: null, ...FIELDS_OF_1_2, members: {}, sources: {} };
          // If the studio was created concurrently, this fails, and the retry changes it.
          return { outcome, insert: { _id: put.id, ...empty, ...fields } as StudioDocument, events };
        }
        const $set = { ...fields, ...(formerRegions.length > 0 && { formerRegions }) };
        const read = Object.keys(STUDIO_FIELDS).map((name) => [name, found[name as keyof StudioDocument] ?? null]);
        const update = Object.keys($set).length > 0 && { update: { $set } };
        return { outcome, where: Object.fromEntries(read), ...update, events };
      },
    });
}

/** Ends studios. A further call removes the members and sources that earlier calls have added meanwhile. */
function studioEnder(connection: Connection): DirectoryStore['endStudio'] {
  const change = changer(connection, connection.studios);
  return (studioId, by) =>
    change<EndStudioOutcome>({
      which: { _id: studioId },
      fields: { status: 1, members: 1, sources: 1 },
      async decide(found) {
        const [members, sources] = [found?.members, found?.sources].map((list) => Object.keys(Object(list)).length);
        const ending = found && { status: found.status, members, sources };
        const decision = decideEnd(ending as EndingStudio | null, by);
        if (!found || !('write' in decision) || !decision.write) return { outcome: decision.outcome };
        const where = { status: found.status ?? null } as Filter<StudioDocument>;
        const $set = { status: 'ended', members: {}, sources: {} } as const;
        return { ...decision, where, update: { $set, $unset: { retention: 1 } } };
      },
    });
}

/** A member or a source, and the request that changes it. */
interface Entry extends Repeatable {
  readonly studioId: string;
  readonly id: string;
}

interface EntryList<Record> {
  readonly list: 'members' | 'sources';
  readonly max: number;
  entryIn(studio: StudioDocument, id: string): Checked<Record> | null;
}

/** Returns functions that find, put and remove the members of studios, or their sources. */
function entryStore<Record>(connection: Connection, reads: StudioReads, { list, max, entryIn }: EntryList<Record>) {
  const { studios, call, report } = connection;
  const change = changer(connection, studios);
  const ofEntry = ({ studioId, id, requestId }: Entry) => ({
    which: { _id: studioId },
    fields: { [`${list}.${id}`]: 1, status: 1 } as const,
    requestId,
  });
  const valueIn = (studio: StudioDocument | null, id: string): unknown =>
    studio?.[list] && findEntry<unknown>(studio[list], id);
  const isStill = (id: string, value: unknown) =>
    ({ [`${list}.${id}`]: value === undefined ? { $exists: false } : { $eq: value } }) as Filter<StudioDocument>;
  const readable = (studio: StudioDocument | null, id: string) => studio && readableOrNull(entryIn(studio, id), report);
  const studioRecord = (studioId: string) => ({ kind: 'studio', studioId, id: studioId }) as const;

  return {
    find: (studioId: string, id: string) =>
      call(async (deadline) => readable(await reads.submit({ studioId, paths: [`${list}.${id}`] }, deadline), id)),

    /** Puts an entry. The database counts the entries in the same write, so concurrent calls cannot exceed the limit. */
    put: (entry: Entry, value: unknown, createEvents: EventsOfEntry) =>
      change<PutOutcome>({
        ...ofEntry(entry),
        async decide(studio, isApplied) {
          const before = valueIn(studio, entry.id);
          const count = { $size: { $objectToArray: { $ifNull: [`$${list}`, {}] } } };
          const still = isStill(entry.id, before);
          const isNew = studio && !isApplied && before === undefined;
          // An entry that another call has put meanwhile does not exceed the limit: it is read again.
          const full = { ...still, $expr: { $gte: [count, max] } };
          const isFull = Boolean(isNew && (await studios.findOne({ _id: studio._id, ...full }, ID_ONLY)));
          const read = { status: studio && (studio.status ?? ''), before, isFull };
          const decision = decideEntry(read, createEvents, isApplied);
          if (!('write' in decision)) return decision;
          const where = { ...still, ...(before === undefined && { $expr: { $lt: [count, max] } }) };
          const update = { $set: { [`${list}.${entry.id}`]: value } } as UpdateFilter<StudioDocument>;
          return { ...decision, where, update, record: studioRecord(entry.studioId) };
        },
      }),

    /** Removes an entry; returns its former state. */
    async remove(entry: Entry, createEvents: EventsOfEntry) {
      /** The state that the last attempt read. If an attempt took effect, it was the last one that wrote. */
      let before: StudioDocument | null = null;
      await change<null>({
        ...ofEntry(entry),
        async decide(studio, isApplied) {
          if (!isApplied) before = studio;
          if (!studio || isApplied) return { outcome: null };
          const value = valueIn(studio, entry.id);
          const where = isStill(entry.id, value);
          if (value === undefined) return { outcome: null, where };
          const update = { $unset: { [`${list}.${entry.id}`]: 1 } } as UpdateFilter<StudioDocument>;
          return { outcome: null, where, update, events: createEvents(value), record: studioRecord(entry.studioId) };
        },
      });
      return readable(before, entry.id);
    },
  };
}
