import type { LeadSource, Member } from '../../domain/studio.ts';
import type { DirectoryStore } from '../store.ts';
import { type Connection, untilKnown } from './connection.ts';
import { roleOf, type StudioDocument } from './documents.ts';
import type { StudioReads } from './studio-reads.ts';

/** Studios with their members and sources, in MongoDB. Every write may be repeated, so an unknown outcome is tried again. */
export function mongoDirectory({ studios, call }: Connection, reads: StudioReads): DirectoryStore {
  return {
    putStudio: ({ id, status, regionCode }) =>
      call((deadline) =>
        untilKnown(deadline, () =>
          studios.updateOne(
            { _id: id },
            { $set: { status, regionCode }, $setOnInsert: { members: {}, sources: {} } },
            { upsert: true },
          ),
        ),
      ).then(() => {}),

    findStudio: (studioId) =>
      call(async (deadline) => {
        const found = await reads.ask({ studioId }, deadline);
        return found && { id: studioId, status: found.status, regionCode: found.regionCode };
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
        return sourcesOf(studio).find(({ id }) => id === sourceId) ?? null;
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
