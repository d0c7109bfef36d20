import type { Deed } from '../../domain/audit.ts';
import { renewalAfter } from '../../domain/claim-renewal.ts';
import type { LeadSource, Member, Studio } from '../../domain/studio.ts';
import type { DirectoryStore, StudioPut } from '../store.ts';
import { remember } from './audit.ts';
import { type Connection, untilKnown } from './connection.ts';
import {
  type HistoryEntry,
  renewalFields,
  renewalOf,
  roleOf,
  STUDIO_FIELDS,
  type StudioDocument,
  sourceOf,
  studioOf,
} from './documents.ts';
import type { StudioReads } from './studio-reads.ts';

/** Studios with their members and sources, in MongoDB. Every write may be repeated, so an unknown outcome is tried again. */
export function mongoDirectory({ studios, call }: Connection, reads: StudioReads): DirectoryStore {
  async function createStudio({ id, status, regionCode = null }: StudioPut & Pick<Studio, 'status'>, by: Deed) {
    const history = [statusEntry(by, status)];
    // Should it be there meanwhile, this is refused, and tried again as a change.
    await studios.insertOne({ _id: id, status, regionCode, ...renewalFields(null), members: {}, sources: {}, history });
    return { studio: { id, status, regionCode, formerRules: [] } };
  }

  /** Changes a studio as it was read; undefined when somebody else has changed it since. */
  async function changeStudio(
    found: StudioDocument,
    put: StudioPut,
    by: Deed,
  ): Promise<{ studio: Studio } | undefined> {
    const { _id, status: from, regionCode: regionBefore } = found;
    const { status = from, regionCode = regionBefore } = put;
    const renewalBefore = renewalOf(found);
    const renewal = renewalAfter(studioOf(found), regionCode, renewalBefore, by.now);
    const { matchedCount } = await studios.updateOne(
      { _id, status: from, regionCode: regionBefore, 'renewal.since': found.renewal?.since ?? null },
      {
        $set: {
          status,
          regionCode,
          ...(renewal !== renewalBefore && renewalFields(renewal)),
        },
        ...(status !== from && { $push: remember({ ...statusEntry(by, status), from }) }),
      },
    );
    const formerRules = renewal?.formerRules ?? [];
    return matchedCount === 1 ? { studio: { id: _id, status, regionCode, formerRules } } : undefined;
  }

  return {
    putStudio: (put, by) =>
      call((deadline) =>
        untilKnown(deadline, async () => {
          const found = await studios.findOne({ _id: put.id }, { projection: STUDIO_FIELDS });
          deadline.throwIfAborted();
          if (found) return changeStudio(found, put, by);
          return put.status === undefined ? { studio: null } : createStudio({ ...put, status: put.status }, by);
        }),
      ).then(({ studio }) => studio),

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

const statusEntry = ({ memberId, now: time }: Deed, to: Studio['status']): HistoryEntry => ({
  action: 'studio-status-changed',
  memberId,
  time,
  to,
});

function memberOf(studio: StudioDocument | null, id: string): Member | null {
  const role = studio && roleOf(studio, id);
  return role && { studioId: studio._id, id, role };
}

function sourcesOf(studio: StudioDocument | null): LeadSource[] {
  if (!studio) return [];
  const sources = Object.entries(studio.sources).map(([id, source]) => ({ studioId: studio._id, id, ...source }));
  return sources.sort((a, b) => (a.id < b.id ? -1 : 1));
}
