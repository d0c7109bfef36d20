import { type AuditContext, actorIn } from '../../domain/audit.ts';
import {
  keepingText,
  type MemberRole,
  memberText,
  numberText,
  type SourceSettings,
  STUDIO_STATUSES,
  type Studio,
  sourceText,
} from '../../domain/studio.ts';
import { isOneOf } from '../checked.ts';
import type { EndStudioOutcome, PutOutcome, PutStudioOutcome, StudioPut } from '../port/directory.ts';
import type { DecidedEvent, Decision } from './decision.ts';

export interface StoredStudio {
  readonly studio: Studio;
  /** The stored value, readable or not. */
  readonly status: unknown;
  readonly quotaLimit: unknown;
}

/** Changed fields of a studio. Its former regions are added to the stored ones. */
export interface StudioWrite extends Partial<Studio> {
  readonly formerRegions: Studio['formerRegions'];
}

const NEW_STUDIO = {
  regionCode: null,
  quotaLimit: null,
  keepEnquiries: true,
  isTest: false,
  retention: null,
  formerRegions: [],
};

export function decideStudio(
  found: StoredStudio | null,
  put: StudioPut,
  { now: time, ...by }: AuditContext,
  isApplied: boolean,
): Decision<PutStudioOutcome, StudioWrite> {
  const { id, status, regionCode, quotaLimit, keepEnquiries, isTest, retentionDays: days, graceFrom } = put;
  if (!found && status === undefined) return { outcome: { kind: 'not-found' } };
  if (found?.studio.status === 'ended') return { outcome: { kind: 'ended' } };
  if (found && isTest !== undefined && isTest !== found.studio.isTest) return { outcome: { kind: 'test-differs' } };
  if (found && isApplied) return { outcome: { kind: 'put', studio: found.studio } };
  const before = { ...NEW_STUDIO, ...found?.studio };
  const daysBefore = before.retention?.days ?? null;
  const fields = {
    ...(status !== undefined && { status }),
    ...(regionCode !== undefined && { regionCode }),
    ...(quotaLimit !== undefined && { quotaLimit }),
    ...(keepEnquiries !== undefined && { keepEnquiries }),
    ...(!found && isTest && { isTest }),
    // Null is always written, because the stored retention may be unreadable. The same days keep their grace period.
    ...(days === null && { retention: null }),
    ...(days &&
      days !== daysBefore && { retention: { days, since: graceFrom && graceFrom > time ? graceFrom : time } }),
  };
  const isRegionReplaced = found && regionCode !== undefined && regionCode !== before.regionCode;
  const pastRegions = isRegionReplaced ? [before.regionCode, ...before.formerRegions] : [];
  const formerRegions = [...new Set([...before.formerRegions, ...pastRegions])];
  const from = isOneOf(STUDIO_STATUSES, found?.status) ? found.status : null;
  const events: DecidedEvent[] = [];
  const record = (action: DecidedEvent['action'], from: string | null, to: string | null) =>
    events.push({ action, ...actorIn(by), time, from, to });
  if (status !== undefined && status !== from) record('studio-status-changed', from, status);
  if (quotaLimit !== undefined && quotaLimit !== (found?.quotaLimit ?? null))
    record('studio-quota-changed', numberText(before.quotaLimit), numberText(quotaLimit));
  if (regionCode !== undefined && regionCode !== before.regionCode)
    record('studio-region-changed', before.regionCode, regionCode);
  if (keepEnquiries !== undefined && keepEnquiries !== before.keepEnquiries)
    record('studio-enquiries-changed', keepingText(before.keepEnquiries), keepingText(keepEnquiries));
  if (days !== undefined && days !== daysBefore)
    record('studio-retention-changed', numberText(daysBefore), numberText(days));
  return {
    outcome: { kind: 'put', studio: { ...before, ...fields, id, formerRegions } as Studio },
    write: { ...fields, formerRegions: [...new Set(pastRegions)] },
    events,
  };
}

export interface EndingStudio {
  readonly status: unknown;
  /** Numbers of entries. */
  readonly members: number;
  readonly sources: number;
}

export function decideEnd(
  found: EndingStudio | null,
  { now: time, ...by }: AuditContext,
): Decision<EndStudioOutcome, 'end'> {
  if (!found) return { outcome: { kind: 'not-found' } };
  const { status, members, sources } = found;
  const outcome = { kind: 'ended', members, sources } as const;
  if (status === 'ended') return { outcome, write: members + sources === 0 ? null : 'end' };
  const from = isOneOf(STUDIO_STATUSES, status) ? status : null;
  return {
    outcome,
    write: 'end',
    events: [{ action: 'studio-status-changed', ...actorIn(by), time, from, to: 'ended' }],
  };
}

/** Returns the events of a changed member or source. @param before its stored value; undefined: none */
export type EventsOfEntry = (before: unknown) => readonly DecidedEvent[];

/** Returns the event of a member, whose former role may be from any release. @param role undefined: it is removed */
export const memberEvents =
  ({ now: time, ...by }: AuditContext, id: string, role?: MemberRole): EventsOfEntry =>
  (before) => {
    const [from, to] = [memberText(id, before), memberText(id, role)];
    return before === role ? [] : [{ action: 'studio-member-changed', ...actorIn(by), time, from, to }];
  };

/** Returns the event of a source. @param source undefined: it is removed */
export const sourceEvents =
  ({ now: time, ...by }: AuditContext, id: string, source?: SourceSettings): EventsOfEntry =>
  (stored) => {
    const before = stored === undefined ? undefined : Object(stored);
    if (source && before && source.name === before.name && source.enabled === before.enabled) return [];
    const [from, to] = [sourceText(id, before), sourceText(id, source)];
    return [{ action: 'studio-source-changed', ...actorIn(by), time, from, to }];
  };

/** Decides about putting a member or source of a studio. @param status the studio's; null: there is no studio */
export function decideEntry(
  { status, before, isFull }: { readonly status: unknown; readonly before: unknown; readonly isFull: boolean },
  createEvents: EventsOfEntry,
  isApplied: boolean,
): Decision<PutOutcome, 'put'> {
  if (status === null) return { outcome: 'no-studio' };
  if (status === 'ended') return { outcome: 'ended' };
  if (isApplied) return { outcome: 'put' };
  if (before === undefined && isFull) return { outcome: 'limit-reached' };
  return { outcome: 'put', write: 'put', events: createEvents(before) };
}
