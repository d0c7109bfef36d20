import type { LeadSource, Member } from '../../domain/studio.ts';
import type { DirectoryStore } from '../store.ts';
import { remember } from './audit.ts';
import { type Connection, untilKnown } from './connection.ts';
import { type HistoryEntry, roleOf, type StudioDocument, sourceOf, studioOf } from './documents.ts';
import type { StudioReads } from './studio-reads.ts';

/** Studios with their members and sources, in MongoDB. Every write may be repeated, so an unknown outcome is tried again. */
export function mongoDirectory({ studios, call }: Connection, reads: StudioReads): DirectoryStore {
  return {
    putStudio: ({ id, status, regionCode }, { memberId, now: time }) =>
      call((deadline) =>
        untilKnown(deadline, async () => {
          const entry: HistoryEntry = { action: 'studio-status-changed', memberId, time, to: status };
          // There are two statuses: whoever has not this one has the other.
          const from = status === 'active' ? 'suspended' : 'active';
          const { matchedCount } = await studios.updateOne(
            { _id: id, status: from },
            { $set: { status, regionCode }, $push: remember({ ...entry, from }) },
          );
          if (matchedCount === 1) return true;
          deadline.throwIfAborted();
          // Should it have got the other status meanwhile, this would make it a second time, which is refused.
          await studios.updateOne(
            { _id: id, status },
            { $set: { regionCode }, $setOnInsert: { members: {}, sources: {}, history: [entry] } },
            { upsert: true },
          );
          return true;
        }),
      ).then(() => {}),

    findStudio: (studioId) =>
      call(async (deadline) => {
        const found = await reads.ask({ studioId }, deadline);
        return found && studioOf(found);
      }),

    putMember: ({ studioId, id, role }) =>
      call((deadline) =>
        untilKnown(deadline, async () => {
          const { matchedCount } = await studios.updateOne({ _id: studioId }, { $set: { [`members.${id}`]: role } });
          return matchedCount === 1;
        }),
      ),

    findMember: (studioId, memberId) =>
      call(async (deadline) => memberOf(await reads.ask({ studioId, memberId }, deadline), memberId)),

    removeMember: (studioId, memberId) =>
      call(async () => {
        const before = await studios.findOneAndUpdate({ _id: studioId }, { $unset: { [`members.${memberId}`]: 1 } });
        return memberOf(before, memberId);
      }),

    putLeadSource: ({ studioId, id, name, enabled }) =>
      call((deadline) =>
        untilKnown(deadline, async () => {
          const { matchedCount } = await studios.updateOne(
            { _id: studioId },
            { $set: { [`sources.${id}`]: { name, enabled } } },
          );
          return matchedCount === 1;
        }),
      ),

    findLeadSource: (studioId, sourceId) =>
      call(async (deadline) => {
        const studio = await reads.ask({ studioId, sourceId }, deadline);
        return studio && sourceOf(studio, sourceId);
      }),

    listLeadSources: (studioId) =>
      call(async () => sourcesOf(await studios.findOne({ _id: studioId }, { projection: { sources: 1 } }))),
  };
}

function memberOf(studio: StudioDocument | null, id: string): Member | null {
  const role = studio && roleOf(studio, id);
  return role && { studioId: studio._id, id, role };
}

function sourcesOf(studio: StudioDocument | null): LeadSource[] {
  if (!studio) return [];
  const sources = Object.entries(studio.sources).map(([id, source]) => ({ studioId: studio._id, id, ...source }));
  return sources.sort((a, b) => (a.id < b.id ? -1 : 1));
}
