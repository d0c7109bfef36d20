import { uuidFault } from '../../common/rules/field-rules.ts';
import type { Lead, LeadStage } from './lead.ts';
import type { Faults } from './refusal.ts';

/** The times from `start` on and before `end`; null: that end is open. */
export interface TimeRange {
  readonly start: Date | null;
  readonly end: Date | null;
}

export interface LeadFilter {
  /** Empty: any. */
  readonly stages: readonly LeadStage[];
  /** Empty: any, or none. */
  readonly sourceIds: readonly string[];
  readonly created: TimeRange;
  readonly updated: TimeRange;
}

export const MAX_FILTERED_SOURCES = 20;

/** A filter that is not yet checked. */
export interface GivenLeadFilter {
  /** Undefined: unknown. */
  readonly stages: readonly (LeadStage | undefined)[];
  readonly sourceIds: readonly string[];
  /** An invalid Date is no time. */
  readonly created: TimeRange;
  readonly updated: TimeRange;
}

export const isAnyTime = ({ start, end }: TimeRange): boolean => start === null && end === null;

/** Returns the filter of a request; undefined: it has none, or one that matches everything. Notes what is wrong with it. */
export function filterOf(given: GivenLeadFilter | undefined, faults: Faults): LeadFilter | undefined {
  if (!given) return undefined;
  const { stages, sourceIds, created, updated } = given;
  if (stages.includes(undefined)) faults.note('filter.stages', 'must be known stages');
  faults.noteEach('filter.sourceIds', sourceIds, MAX_FILTERED_SOURCES, (id) => ({ '': uuidFault(id) }));
  noteRangeFaults(faults, 'filter.createTime', created);
  noteRangeFaults(faults, 'filter.updateTime', updated);
  if (stages.length + sourceIds.length === 0 && isAnyTime(created) && isAnyTime(updated)) return undefined;
  // In one order, because page tokens are only for the same filter.
  const known = stages.filter((stage) => stage !== undefined);
  const ids = sourceIds.map((id) => id.toLowerCase());
  return { stages: [...new Set(known)].sort(), sourceIds: [...new Set(ids)].sort(), created, updated };
}

export function noteRangeFaults(faults: Faults, field: string, { start, end }: TimeRange): void {
  for (const [name, time] of Object.entries({ startTime: start, endTime: end }))
    if (Number.isNaN(time?.getTime())) faults.note(`${field}.${name}`, 'must be a time from the year 1 to 9999');
  if (start && end && start > end) faults.note(field, 'must not end before it starts');
}

/** @param range default: all times */
export const isIn = (time: Date, { start, end }: TimeRange = { start: null, end: null }): boolean =>
  (!start || time >= start) && (!end || time < end);

export const isMatch = (
  { stages, sourceIds, created, updated }: LeadFilter,
  { stage, sourceId, createdAt, updatedAt }: Pick<Lead, 'stage' | 'sourceId' | 'createdAt' | 'updatedAt'>,
): boolean =>
  (stages.length === 0 || stages.includes(stage)) &&
  (sourceIds.length === 0 || (sourceId !== null && sourceIds.includes(sourceId))) &&
  isIn(createdAt, created) &&
  isIn(updatedAt, updated);

/** What a token of a filtered list is for. @param studioId empty: all studios */
export const scopeOf = (studioId: string, filter: LeadFilter | undefined): string =>
  filter ? `${studioId}\n${JSON.stringify(filter)}` : studioId;

/**
 * Whether a list is in the order of `updatedAt`, because that finds the leads of a filter without reading the others; else it
 * is in the order of ids. In the order of `updatedAt` the newest first is for people, the oldest first for programs: a lead
 * that changes meanwhile moves ahead of these, so that they miss none.
 */
export const isByUpdate = (filter: LeadFilter | undefined, first: 'newest' | 'oldest'): boolean =>
  filter !== undefined &&
  (filter.updated.start !== null || (first === 'newest' && (filter.stages.length > 0 || filter.updated.end !== null)));
