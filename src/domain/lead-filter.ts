import { uuidFault } from '../../common/rules/field-rules.ts';
import type { CountedLead, LeadStage } from './lead.ts';
import { idBelow } from './new-id.ts';
import type { Faults } from './refusal.ts';

/** The times from `start` on and before `end`; null: that end is open. */
export interface TimeRange {
  readonly start: Date | null;
  readonly end: Date | null;
}

export interface LeadFilter {
  /** Empty: any stage. */
  readonly stages: readonly LeadStage[];
  /** Empty: any source, or no source. */
  readonly sourceIds: readonly string[];
  readonly created: TimeRange;
  readonly updated: TimeRange;
  /** The API keys that created the leads; absent: any key, or no key. Never empty, so page tokens of release 1.2 stay valid. */
  readonly apiKeyIds?: readonly string[];
}

/** The maximum number of sources in a filter, and of API keys. */
const MAX_FILTERED_IDS = 20;

/** An unchecked filter. */
export interface GivenLeadFilter {
  /** Undefined: unknown. */
  readonly stages: readonly (LeadStage | undefined)[];
  readonly sourceIds: readonly string[];
  /** An invalid Date: the request gave no valid time. */
  readonly created: TimeRange;
  readonly updated: TimeRange;
  readonly apiKeyIds?: readonly string[];
}

/** Returns the bounds of the ids of leads created in the filter's range; null or undefined: that end is open. */
export const idBounds = (filter: LeadFilter | undefined) =>
  [filter?.created.start, filter?.created.end].map((time) => time && idBelow(time));

export const isAnyTime = ({ start, end }: TimeRange): boolean => start === null && end === null;

/** Returns the filter of a request, and notes its faults; undefined: it has none, or one that matches everything. */
export function parseFilter(given: GivenLeadFilter | undefined, faults: Faults): LeadFilter | undefined {
  if (!given) return undefined;
  const { stages, sourceIds, created, updated, apiKeyIds = [] } = given;
  if (stages.includes(undefined)) faults.note('filter.stages', 'must be known stages');
  for (const [field, ids] of Object.entries({ sourceIds, apiKeyIds }))
    faults.noteEach(`filter.${field}`, ids, MAX_FILTERED_IDS, (id) => ({ '': uuidFault(id) }));
  noteRangeFaults(faults, 'filter.createTime', created);
  noteRangeFaults(faults, 'filter.updateTime', updated);
  if (stages.length + sourceIds.length + apiKeyIds.length === 0 && isAnyTime(created) && isAnyTime(updated))
    return undefined;
  // Sorted, because page tokens are bound to equal filters.
  const known = stages.filter((stage) => stage !== undefined);
  const sorted = (ids: readonly string[]) => [...new Set(ids.map((id) => id.toLowerCase()))].sort();
  const filter = { stages: [...new Set(known)].sort(), sourceIds: sorted(sourceIds), created, updated };
  return apiKeyIds.length > 0 ? { ...filter, apiKeyIds: sorted(apiKeyIds) } : filter;
}

export function noteRangeFaults(faults: Faults, field: string, { start, end }: TimeRange): void {
  for (const [name, time] of Object.entries({ startTime: start, endTime: end }))
    if (Number.isNaN(time?.getTime())) faults.note(`${field}.${name}`, 'must be a time from the year 1 to 9999');
  if (start && end && start > end) faults.note(field, 'must not end before it starts');
}

/** Whether a time is in a range; without a range, it is. */
export const isIn = (time: Date, { start, end }: TimeRange = { start: null, end: null }): boolean =>
  (!start || time >= start) && (!end || time < end);

export const isMatch = (
  { stages, sourceIds, created, updated, apiKeyIds }: LeadFilter,
  { stage, sourceId, createdAt, updatedAt, apiKeyId = '' }: CountedLead,
): boolean =>
  (stages.length === 0 || stages.includes(stage)) &&
  (sourceIds.length === 0 || (sourceId !== null && sourceIds.includes(sourceId))) &&
  (!apiKeyIds || apiKeyIds.includes(apiKeyId)) &&
  isIn(createdAt, created) &&
  isIn(updatedAt, updated);

/** Returns the scope of a filtered list's tokens. @param studioId empty: all studios */
export const toScope = (studioId: string, filter: LeadFilter | undefined): string =>
  filter ? `${studioId}\n${JSON.stringify(filter)}` : studioId;

/**
 * Whether a list is ordered by `updatedAt`, which finds a filter's leads without reading the others. Otherwise it is
 * ordered by id. People read the newest first. Programs read the oldest first and miss none, because a lead that changes
 * meanwhile moves ahead of them.
 */
export const isByUpdate = (filter: LeadFilter | undefined, first: 'newest' | 'oldest'): boolean =>
  filter !== undefined &&
  (filter.updated.start !== null || (first === 'newest' && (filter.stages.length > 0 || filter.updated.end !== null)));
