import type { Batcher } from './batcher.ts';
import type { Batching } from './collections.ts';
import { READ, STUDIO_FIELDS, type StudioDocument } from './documents.ts';

/** What to read of a studio: its record, and optionally a member and a source. */
interface StudioRead {
  readonly studioId: string;
  readonly memberId?: string | undefined;
  readonly sourceId?: string | undefined;
}

/** Combined reads of studios. A studio's document may be large, so only the requested parts are read. */
export type StudioReads = Pick<Batcher<StudioRead, StudioDocument | null>, 'submit'>;

/** Each read returns a document with at least the requested parts. */
export function studioReads({ batched }: Batching): StudioReads {
  return batched(async ({ studios }, reads) => {
    const projection: Record<string, 1> = { ...STUDIO_FIELDS };
    for (const { memberId, sourceId } of reads) {
      if (memberId !== undefined) projection[`members.${memberId}`] = 1;
      if (sourceId !== undefined) projection[`sources.${sourceId}`] = 1;
    }
    const studioIds = [...new Set(reads.map(({ studioId }) => studioId))];
    const found = await studios.find({ _id: { $in: studioIds } }, { ...READ, projection }).toArray();
    const byId = new Map(found.map((studio) => [studio._id, studio]));
    return reads.map(({ studioId }) => byId.get(studioId) ?? null);
  });
}
