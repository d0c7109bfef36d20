import type { Filter } from 'mongodb';
import type { AuditContext } from '../../domain/audit.ts';
import { quotaLimitText } from '../../domain/quota-limit.ts';
import { type LeadSource, MAX_LEAD_SOURCES, MAX_MEMBERS, STUDIO_STATUSES, type Studio } from '../../domain/studio.ts';
import { type Checked, isOneOf, readableOrNull } from '../checked.ts';
import { readPage } from '../pages.ts';
import { regionsToNote } from '../release-1-1.ts';
import type { DirectoryStore, PutOutcome, ReportUnreadable, StudioPut } from '../store.ts';
import { actor, updateWithEvents } from './audit.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  AFTER_ALL_STUDIOS,
  type HistoryEntry,
  listedStudioOf,
  memberOf,
  NOTHING_DUE,
  READ,
  STUDIO_FIELDS,
  type StudioDocument,
  sourceOf,
  studioOf,
} from './documents.ts';
import type { StudioReads } from './studio-reads.ts';

/**
 * Studios with their members and sources, in MongoDB. Every write is idempotent, and retried if its outcome is unknown.
 */
export function mongoDirectory(connection: Connection, reads: StudioReads, report: ReportUnreadable): DirectoryStore {
  const { studios, call } = connection;
  const putEntry = entryPutter(connection);

  /** Removes an entry; returns the studio before, with only that entry. */
  const remove = (studioId: string, entry: string) =>
    studios.findOneAndUpdate({ _id: studioId }, { $unset: { [entry]: 1 } }, { ...READ, projection: { [entry]: 1 } });

  return {
    putStudio: studioPutter(connection, report),

    findStudio: (studioId) =>
      call(async (deadline) => {
        const found = await reads.submit({ studioId }, deadline);
        return found && studioOf(found, report);
      }),

    listStudios: (first, limit) =>
      call(() => {
        const read = (after: string | null, count: number) =>
          studios
            .find({ _id: { $gt: after ?? '', $lt: AFTER_ALL_STUDIOS } }, { ...READ, projection: STUDIO_FIELDS })
            .sort({ _id: 1 })
            .limit(count)
            .toArray();
        const idOf = ({ _id }: StudioDocument) => _id;
        return readPage(
          { read, idOf, check: (document) => listedStudioOf(document, report) },
          { after: first, limit },
          report,
        );
      }),

    putMember: ({ studioId, id, role }) => putEntry(studioId, 'members', { id, value: role, max: MAX_MEMBERS }),

    findMember: (studioId, memberId) =>
      call(async (deadline) => {
        const studio = await reads.submit({ studioId, memberId }, deadline);
        return studio && readableOrNull(memberOf(studio, memberId), report);
      }),

    removeMember: (studioId, memberId) =>
      call(async () => {
        const before = await remove(studioId, `members.${memberId}`);
        return before && readableOrNull(memberOf(before, memberId), report);
      }),

    putLeadSource: ({ studioId, id, name, enabled }) =>
      putEntry(studioId, 'sources', { id, value: { name, enabled }, max: MAX_LEAD_SOURCES }),

    removeLeadSource: (studioId, sourceId) =>
      call(async () => {
        const before = await remove(studioId, `sources.${sourceId}`);
        return before && readableOrNull(sourceOf(before, sourceId), report);
      }),

    findLeadSource: (studioId, sourceId) =>
      call(async (deadline) => {
        const studio = await reads.submit({ studioId, sourceId }, deadline);
        return studio && readableOrNull(sourceOf(studio, sourceId), report);
      }),

    listLeadSources: (studioId, after, limit) =>
      call(async () => {
        const studio = await studios.findOne({ _id: studioId }, { ...READ, projection: { sources: 1 } });
        if (!studio) return { records: [], next: null };
        const ids = Object.keys(Object(studio.sources)).sort();
        const read = (position: string | null, count: number) =>
          ids.slice(position === null ? 0 : ids.findLastIndex((id) => id <= position) + 1).slice(0, count);
        const check = (id: string) => sourceOf(studio, id) as Checked<LeadSource>;
        return readPage({ read, idOf: (id) => id, check }, { after, limit }, report);
      }),
  };
}

function studioPutter({ studios, call }: Connection, report: ReportUnreadable): DirectoryStore['putStudio'] {
  async function createStudio(put: StudioPut & Pick<Studio, 'status'>, by: AuditContext) {
    const { id, status, regionCode = null, quotaLimit = null } = put;
    const history = [statusEntry(by, status), ...(quotaLimit === null ? [] : [quotaEntry(by, null, quotaLimit)])];
    const record = { status, regionCode, quotaLimit };
    // If the studio was created concurrently, this fails and is retried as a change.
    await studios.insertOne({ _id: id, ...record, ...NOTHING_DUE, members: {}, sources: {}, history });
    return { studio: { id, ...record, formerRegions: [] } };
  }

  /** Changes a studio; returns undefined if it was changed since it was read. */
  async function changeStudio(
    found: StudioDocument,
    put: StudioPut,
    by: AuditContext,
  ): Promise<{ studio: Studio } | undefined> {
    const { status, regionCode, quotaLimit } = put;
    const before = studioOf(found, report);
    const former = regionsToNote(before, put, Boolean(found.renewal));
    const unchanged = {
      _id: found._id,
      status: found.status ?? null,
      regionCode: found.regionCode ?? null,
      quotaLimit: found.quotaLimit ?? null,
      formerRegions: sameRegions(found.formerRegions),
      'renewal.since': found.renewal?.since ?? null,
    } as Filter<StudioDocument>;
    const change = {
      ...(status !== undefined && { status }),
      ...(regionCode !== undefined && { regionCode }),
      ...(quotaLimit !== undefined && { quotaLimit }),
      ...(former.length > 0 && { ...NOTHING_DUE, formerRegions: [...new Set(former)] }),
    };
    const from = isOneOf(STUDIO_STATUSES, found.status) ? found.status : undefined;
    const entries = [
      ...(status === undefined || status === from ? [] : [{ ...statusEntry(by, status), ...(from && { from }) }]),
      ...(quotaLimit === undefined || quotaLimit === (found.quotaLimit ?? null)
        ? []
        : [quotaEntry(by, before.quotaLimit, quotaLimit)]),
    ];
    const isChanged =
      entries.length === 0
        ? Object.keys(change).length === 0 || (await studios.updateOne(unchanged, { $set: change })).matchedCount === 1
        : await updateWithEvents(studios, unchanged, change, ...entries);
    const studio = {
      id: found._id,
      status: status ?? before.status,
      regionCode: regionCode === undefined ? before.regionCode : regionCode,
      quotaLimit: quotaLimit === undefined ? before.quotaLimit : quotaLimit,
      formerRegions: [...new Set([...before.formerRegions, ...former])],
    };
    return isChanged ? { studio } : undefined;
  }

  return (put, by) =>
    call((deadline) =>
      untilKnown(deadline, async () => {
        const found = await studios.findOne({ _id: put.id }, { ...READ, projection: STUDIO_FIELDS });
        deadline.throwIfAborted();
        if (found) return changeStudio(found, put, by);
        return put.status === undefined ? { studio: null } : createStudio({ ...put, status: put.status }, by);
      }),
    ).then(({ studio }) => studio);
}

/** Puts an entry. The database counts the entries in the same write, so concurrent calls cannot exceed the limit. */
const entryPutter =
  ({ studios, call }: Connection) =>
  (
    studioId: string,
    list: 'members' | 'sources',
    { id, value, max }: { readonly id: string; readonly value: unknown; readonly max: number },
  ) =>
    call((deadline) =>
      untilKnown<PutOutcome>(deadline, async () => {
        const entry = `${list}.${id}`;
        const count = { $size: { $objectToArray: { $ifNull: [`$${list}`, {}] } } };
        const fits = { $or: [{ [entry]: { $exists: true } }, { $expr: { $lt: [count, max] } }] };
        const { matchedCount } = await studios.updateOne({ _id: studioId, ...fits }, { $set: { [entry]: value } });
        if (matchedCount === 1) return 'put';
        deadline.throwIfAborted();
        const exists = await studios.findOne({ _id: studioId }, { projection: { _id: 1 } });
        return exists ? 'limit-reached' : 'no-studio';
      }),
    );

/** A condition that the former regions have not changed since they were read; a list of them only grows. */
const sameRegions = (regions: unknown) =>
  Array.isArray(regions) ? { $size: regions.length } : regions === undefined ? { $exists: false } : { $eq: regions };

const statusEntry = ({ now: time, ...by }: AuditContext, to: Studio['status']): HistoryEntry => ({
  action: 'studio-status-changed',
  ...actor(by),
  time,
  to,
});

const quotaEntry = ({ now: time, ...by }: AuditContext, from: number | null, to: number | null): HistoryEntry => ({
  action: 'studio-quota-changed',
  ...actor(by),
  time,
  from: quotaLimitText(from),
  to: quotaLimitText(to),
});
