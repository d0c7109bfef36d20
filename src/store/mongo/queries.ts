import { UUID } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import { HIGHEST_ID, LOWEST_ID } from '../../domain/new-id.ts';
import type { SomeLeads } from '../port/resending.ts';

/* Options of commands, `_id`s of documents, and conditions for them. */

/**
 * The options of all reads. Invalid UTF-8 is decoded with replacement characters. With validation, the driver would
 * fail the whole response and the other documents in it.
 */
export const READ = { enableUtf8Validation: false } as const;

/** The options of writes of many documents. The server must not continue them after the call has stopped waiting. */
export const BULK_OPTIONS = { ordered: false, maxTimeMS: STORE_SILENCE_MS } as const;

export const ID_ONLY = { ...READ, projection: { _id: 1 } } as const;

/** Reads without the fields that grow with every change, which may be many times as long as the rest. */
export const WITHOUT_HISTORY = { ...READ, projection: { history: 0, appliedRequests: 0 } } as const;

/**
 * The `_id` of a lead. The studio comes first, so that the index keeps its leads together, in the order of lists. The
 * database compares it as one value, so the order of the fields matters.
 */
export interface LeadKey {
  readonly studioId: string;
  readonly id: UUID;
}

/** The order of the fields matters, as in LeadKey. */
export interface DeliveryKey extends LeadKey {
  readonly consumer: number;
}

export const deliveryKey = (consumer: number, { studioId, id }: LeadKey): DeliveryKey => ({ consumer, studioId, id });

export const leadKey = (studioId: string, leadId: string): LeadKey => ({ studioId, id: new UUID(leadId) });

export const keyText = ({ studioId, id }: LeadKey): string => `${studioId} ${id}`;

/** Returns a condition for records by their `_id`s. Names their studios, so that a cluster asks only the shards that have them. */
export const among = <Id extends { readonly studioId: string }>(ids: readonly Id[]) => ({
  studioId: { $in: [...new Set(ids.map(({ studioId }) => studioId))] },
  _id: { $in: ids },
});

/** Returns a condition for the `_id`s of a studio's leads between two ids; null or undefined: without that bound. */
export const leadIdsBetween = (studioId: string, above?: string | null, below?: string | null) => ({
  ...(above ? { $gt: leadKey(studioId, above) } : { $gte: leadKey(studioId, LOWEST_ID) }),
  ...(below ? { $lt: leadKey(studioId, below) } : { $lte: leadKey(studioId, HIGHEST_ID) }),
});

/** Returns a condition for some leads. */
export const filterSome = (some: SomeLeads) =>
  'leadIds' in some
    ? among(some.leadIds.map((leadId) => leadKey(some.studioId, leadId)))
    : { studioId: some.studioId, _id: leadIdsBetween(some.studioId, some.after) };

/** Returns the id of the last document of a full page; null: the page is not full, so there are no more. */
export const lastIdOfFull = (found: readonly { readonly _id: LeadKey }[], limit: number): string | null =>
  found.length < limit || limit === 0 ? null : (found.at(-1)?._id.id.toString() ?? null);
