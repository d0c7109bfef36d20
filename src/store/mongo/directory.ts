import type { Filter } from 'mongodb';
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
import { applyOnce, type DocumentDecision } from './apply-once.ts';
import type { StudioReads } from './collections.ts';
import type { Connection } from './connection.ts';
import {
  AFTER_ALL_STUDIOS,
  entryOf,
  fieldsIn,
  ID_ONLY,
  memberOf,
  NOTHING_DUE,
  READ,
  STUDIO_FIELDS,
  type StudioDocument,
  sourceOf,
} from './documents.ts';

export function mongoDirectory(connection: Connection, reads: StudioReads): DirectoryStore {
  const { studios, call, report } = connection;
  const { putEntry, removeEntry } = entryWriter(connection);

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
        const idOf = ({ _id }: StudioDocument) => _id;
        return readPage(
          { read, idOf, check: (document) => checkedInParts(STUDIO, fieldsIn(STUDIO, document), report) },
          { after: first, limit },
          report,
        );
      }),

    putMember: ({ studioId, id, role }, by) => {
      const eventsOf = memberEvents(by, id, role);
      return putEntry({ studioId, list: 'members', id }, { value: role, max: MAX_MEMBERS, eventsOf }, by);
    },

    findMember: (studioId, memberId) =>
      call(async (deadline) => {
        const studio = await reads.submit({ studioId, memberId }, deadline);
        return studio && readableOrNull(memberOf(studio, memberId), report);
      }),

    removeMember: async (studioId, memberId, by) => {
      const before = await removeEntry({ studioId, list: 'members', id: memberId }, by, memberEvents(by, memberId));
      return before && readableOrNull(memberOf(before, memberId), report);
    },

    putLeadSource({ studioId, id, name, enabled }, by) {
      const value = { name, enabled };
      const eventsOf = sourceEvents(by, id, value);
      return putEntry({ studioId, list: 'sources', id }, { value, max: MAX_LEAD_SOURCES, eventsOf }, by);
    },

    removeLeadSource: async (studioId, sourceId, by) => {
      const before = await removeEntry({ studioId, list: 'sources', id: sourceId }, by, sourceEvents(by, sourceId));
      return before && readableOrNull(sourceOf(before, sourceId), report);
    },

    findLeadSource: (studioId, sourceId) =>
      call(async (deadline) => {
        const studio = await reads.submit({ studioId, sourceId }, deadline);
        return studio && readableOrNull(sourceOf(studio, sourceId), report);
      }),

    listLeadSources: (studioId, after, limit) =>
      call(async () => {
        const studio = await studios.findOne({ _id: studioId }, { ...READ, projection: { sources: 1 } });
        if (!studio) return { records: [], next: null, skipped: 0 };
        const ids = Object.keys(Object(studio.sources)).sort();
        const read = (position: string | null, count: number) =>
          ids.slice(position === null ? 0 : ids.findLastIndex((id) => id <= position) + 1).slice(0, count);
        const check = (id: string) => sourceOf(studio, id) as Checked<LeadSource>;
        return readPage({ read, idOf: (id) => id, check }, { after, limit }, report);
      }),
  };
}

const studioPutter =
  ({ studios, oldEvents, call, report }: Connection): DirectoryStore['putStudio'] =>
  (put, by) =>
    call((deadline) => {
      return applyOnce<StudioDocument, PutStudioOutcome>(studios, deadline, {
        which: { _id: put.id },
        fields: STUDIO_FIELDS,
        requestId: by.requestId,
        oldEvents,
        async decide(found, isApplied) {
          const studio = found && fieldsIn(STUDIO, found);
          const stored = studio && { ...studio, studio: checkedStudio(studio, report) };
          const decision = decideStudio(stored, put, by, isApplied);
          if (!('write' in decision) || !decision.write) return decision as { readonly outcome: PutStudioOutcome };
          const { outcome, events } = decision;
          const { formerRegions, ...fields } = decision.write;
          if (!found) {
            const record = {
              _id: put.id,
              regionCode: null,
              quotaLimit: null,
              ...NOTHING_DUE,
              members: {},
              sources: {},
              ...fields,
            };
            // If the studio was created concurrently, this fails, and the next attempt changes it.
            return { outcome, insert: record as StudioDocument, events };
          }
          const $set = { ...fields, ...(formerRegions.length > 0 && { formerRegions }) };
          const read = Object.keys(STUDIO_FIELDS).map((name) => [name, found[name as keyof StudioDocument] ?? null]);
          const where = { ...Object.fromEntries(read), formerRegions: sameRegions(found.formerRegions) };
          return { outcome, where, ...(Object.keys($set).length > 0 && { update: { $set } }), events };
        },
      });
    });

/** What is put by a call that has begun before is removed by the next one. */
const studioEnder =
  ({ studios, oldEvents, call }: Connection): DirectoryStore['endStudio'] =>
  (studioId, by) =>
    call((deadline) =>
      applyOnce<StudioDocument, EndStudioOutcome>(studios, deadline, {
        which: { _id: studioId },
        fields: { status: 1, members: 1, sources: 1 },
        requestId: undefined,
        oldEvents,
        async decide(found) {
          const [members, sources] = [found?.members, found?.sources].map((list) => Object.keys(Object(list)).length);
          const ending = found && { status: found.status, members, sources };
          const decision = decideEnd(ending as EndingStudio | null, by);
          if (!found || !('write' in decision) || !decision.write) return { outcome: decision.outcome };
          const where = { status: found.status ?? null } as Filter<StudioDocument>;
          const $set = { status: 'ended', members: {}, sources: {} } as const;
          const update = { $set, $unset: { retention: 1 } } as const;
          return { outcome: decision.outcome, where, update, events: decision.events };
        },
      }),
    );

interface Entry {
  readonly studioId: string;
  readonly list: 'members' | 'sources';
  readonly id: string;
}

function entryWriter({ studios, oldEvents, call }: Connection) {
  const change = <Outcome>(
    { studioId, list, id }: Entry,
    { requestId }: Repeatable,
    decide: (
      entry: { readonly path: string; readonly value: unknown },
      studio: StudioDocument | null,
      isApplied: boolean,
    ) => Promise<DocumentDecision<StudioDocument, Outcome>>,
  ) =>
    call((deadline) => {
      const path = `${list}.${id}`;
      return applyOnce<StudioDocument, Outcome>(studios, deadline, {
        which: { _id: studioId },
        fields: { [path]: 1, status: 1 },
        requestId,
        oldEvents,
        async decide(found, isApplied) {
          const value = found?.[list] && entryOf<unknown>(found[list], id);
          const decision = await decide({ path, value }, found, isApplied);
          return { ...decision, record: { kind: 'studio', studioId, id: studioId } };
        },
      });
    });

  return {
    /** Puts an entry. The database counts the entries in the same write, so concurrent calls cannot exceed the limit. */
    putEntry: (
      entry: Entry,
      { value, max, eventsOf }: { readonly value: unknown; readonly max: number; readonly eventsOf: EventsOfEntry },
      by: Repeatable,
    ): Promise<PutOutcome> =>
      change<PutOutcome>(entry, by, async ({ path, value: before }, studio, isApplied) => {
        const count = { $size: { $objectToArray: { $ifNull: [`$${entry.list}`, {}] } } };
        const still = isStill(path, before);
        const where: Filter<StudioDocument> = {
          ...still,
          ...(before === undefined && { $expr: { $lt: [count, max] } }),
        };
        const isNew = studio && !isApplied && before === undefined;
        // An entry that another call has put meanwhile is not one too many: it is read again.
        const full = { ...still, $expr: { $gte: [count, max] } };
        const isFull = Boolean(isNew && (await studios.findOne({ _id: studio._id, ...full }, ID_ONLY)));
        const decision = decideEntry({ status: studio && (studio.status ?? ''), before, isFull }, eventsOf, isApplied);
        if (!('write' in decision)) return decision;
        return { ...decision, where, update: { $set: { [path]: value } } };
      }),

    /** Removes an entry; returns the studio as it was before, with only that entry. */
    async removeEntry(entry: Entry, by: Repeatable, eventsOf: EventsOfEntry): Promise<StudioDocument | null> {
      /** As the last attempt has read it: if one took effect, it was the last that wrote. */
      let before: StudioDocument | null = null;
      return change<StudioDocument | null>(entry, by, async ({ path, value }, studio, isApplied) => {
        if (!isApplied) before = studio;
        if (!studio || isApplied) return { outcome: before };
        const where = isStill(path, value);
        if (value === undefined) return { outcome: before, where };
        return { outcome: before, where, update: { $unset: { [path]: 1 } }, events: eventsOf(value) };
      });
    },
  };
}

const isStill = (path: string, value: unknown) =>
  ({ [path]: value === undefined ? { $exists: false } : { $eq: value } }) as Filter<StudioDocument>;

/** A condition that the former regions have not changed since they were read; a list of them only grows. */
const sameRegions = (regions: unknown) =>
  Array.isArray(regions) ? { $size: regions.length } : regions === undefined ? { $exists: false } : { $eq: regions };
