import type { Batcher } from './batcher.ts';
import type { Batching } from './collections.ts';
import { READ, STUDIO_FIELDS, type StudioDocument } from './documents.ts';

/** What to read of a studio: always its own record, and of what it contains only these. */
interface StudioRead {
  readonly studioId: string;
  readonly memberId?: string | undefined;
  readonly sourceId?: string | undefined;
}

/** Reads of studios, together. A studio's document may be large, so a read takes no more of it than somebody asked for. */
export type StudioReads = Pick<Batcher<StudioRead, StudioDocument | null>, 'ask'>;

/** Answers each read with a document that has at least what was asked for. */
export function studioReads({ batched }: Batching): StudioReads {
  return batched(async ({ studios }, reads) => {
    const projection: Record<string, 1> = { ...STUDIO_FIELDS };
    for (const { memberId, sourceId } of reads) {
      if (memberId !== undefined) projection[`members.${memberId}`] = 1;
      if (sourceId !== undefined) projection[`sources.${sourceId}`] = 1;
    }
    const studioIds = [...new Set(reads.map(({ studioId }) => studioId))];
    const found = await studios.find({ _id: { $in: studioIds } }, { ...READ, projection }).toArray();
    const studiosThere = new Map(found.map((studio) => [studio._id, studio]));
    return reads.map(({ studioId }) => studiosThere.get(studioId) ?? null);
  });
}
