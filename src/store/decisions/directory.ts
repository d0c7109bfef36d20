import type { AuditContext } from '../../domain/audit.ts';
import { memberText, quotaLimitText, STUDIO_STATUSES, type Studio } from '../../domain/studio.ts';
import { isOneOf } from '../checked.ts';
import { regionsToNote } from '../release-1-1.ts';
import type { StudioPut } from '../store.ts';
import type { DecidedEvent, Decision } from './decision.ts';

/** A studio as it is stored. */
export interface StoredStudio {
  readonly studio: Studio;
  /** What is stored, readable or not. */
  readonly status: unknown;
  readonly quotaLimit: unknown;
  /** Whether a core of release 1.1 renews its claims. */
  readonly isRenewing: boolean;
}

/** Changed fields of a studio; its former regions are added to those that are stored, and end a renewal. */
export type StudioWrite = Partial<Pick<Studio, 'status' | 'regionCode' | 'quotaLimit'>> & Pick<Studio, 'formerRegions'>;

export function decideStudio(
  found: StoredStudio | null,
  put: StudioPut,
  { memberId, caller, now: time }: AuditContext,
  isApplied: boolean,
): Decision<Studio | null, StudioWrite> {
  const { id, status, regionCode, quotaLimit } = put;
  if (!found && status === undefined) return { outcome: null };
  if (found && isApplied) return { outcome: found.studio };
  const fields = {
    ...(status !== undefined && { status }),
    ...(regionCode !== undefined && { regionCode }),
    ...(quotaLimit !== undefined && { quotaLimit }),
  };
  const before = { regionCode: null, quotaLimit: null, formerRegions: [], ...found?.studio };
  const noted = found ? regionsToNote(found.studio, put, found.isRenewing) : [];
  const formerRegions = [...new Set([...before.formerRegions, ...noted])];
  const from = isOneOf(STUDIO_STATUSES, found?.status) ? found.status : null;
  const events: DecidedEvent[] = [];
  const record = (action: DecidedEvent['action'], from: string | null, to: string | null) =>
    events.push({ action, memberId, caller, time, from, to });
  if (status !== undefined && status !== from) record('studio-status-changed', from, status);
  if (quotaLimit !== undefined && quotaLimit !== (found?.quotaLimit ?? null))
    record('studio-quota-changed', quotaLimitText(before.quotaLimit), quotaLimitText(quotaLimit));
  if (regionCode !== undefined && regionCode !== before.regionCode)
    record('studio-region-changed', before.regionCode, regionCode);
  return {
    outcome: { ...before, ...fields, id, formerRegions } as Studio,
    write: { ...fields, formerRegions: [...new Set(noted)] },
    events,
  };
}

/** @param from the roles before and after, of any release; undefined: none */
export const memberEvent = ({ memberId, caller, now }: AuditContext, id: string, from: unknown, to: unknown) => {
  const texts = { from: memberText(id, from), to: memberText(id, to) };
  return { action: 'studio-member-changed', memberId, caller, time: now, ...texts } as const;
};
