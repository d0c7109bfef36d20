import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { pageTokenFault } from '../../common/rules/field-rules.ts';
import { exportPosition, resumeTokenAfter, type StudioPosition, updatePosition } from '../domain/cursor.ts';
import type { Lead } from '../domain/lead.ts';
import { type GivenLeadFilter, isByUpdate, parseFilter, toScope } from '../domain/lead-filter.ts';
import { LOWEST_ID } from '../domain/new-id.ts';
import { Faults } from '../domain/refusal.ts';
import type { Reading } from './dependencies.ts';
import { eventsOfLead, type LeadEvent } from './lead-events.ts';
import { eachStoredPage, splitIntoParts } from './requests.ts';
import { everyStudio, existingStudio } from './studios.ts';

/** The number of leads that an export reads at a time, and the most that it holds in memory. */
const MAX_LEADS_PER_PAGE = 100;

/** The same with events: each lead may have MAX_AUDIT_EVENTS of some 200 bytes. */
const MAX_LEADS_WITH_EVENTS = 10;

/** Lower than every lead. */
const BEFORE_ALL = { id: LOWEST_ID, updatedAt: new Date(-8.64e15) };

export interface ExportLeadsQuery {
  /** Empty: all studios. */
  readonly studioId: string;
  /** Empty: from the beginning. */
  readonly resumeToken: string;
  /** Whether "all studios" includes test studios. */
  readonly includesTests?: boolean;
  readonly includesEvents?: boolean;
  readonly filter?: GivenLeadFilter | undefined;
}

/** A page of an export, and the token with which an export resumes after it. */
export interface ExportedLeads {
  readonly leads: readonly Lead[];
  /** The events of each lead; absent: not requested. */
  readonly events?: readonly (readonly LeadEvent[])[];
  readonly resumeToken: string;
  /** The number of unreadable leads that were left out of this page. */
  readonly skippedCount: number;
}

/**
 * Yields all leads of a studio, or of all studios except test studios, ordered by studio and id. It reads a page only
 * when requested. Every lead that exists throughout the export is yielded exactly once, even if the export is resumed
 * after its last page. With a filter, pages may be short or empty. If the filter has a start of `updated`, each
 * studio's leads are ordered by `updatedAt`, and leads that change meanwhile come again.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function* exportLeads(
  { store }: Reading,
  { studioId, resumeToken, includesTests = false, includesEvents = false, filter: given }: ExportLeadsQuery,
): AsyncGenerator<ExportedLeads> {
  const faults = new Faults();
  const filter = parseFilter(given, faults);
  const [isOrderedByUpdate, scope] = [isByUpdate(filter, 'oldest'), toScope(studioId, filter)];
  const begin = resumeToken === '' ? null : exportPosition(scope, resumeToken, isOrderedByUpdate);
  if (begin === undefined) {
    const fault = 'must be unchanged, of an export of the same studio and filter';
    faults.note('resumeToken', pageTokenFault(resumeToken) ?? fault);
  }
  const toPosition = isOrderedByUpdate ? updatePosition : ({ id }: { readonly id: string }) => id;
  if (studioId !== '') await existingStudio(store, studioId, faults);
  faults.refuseIfAny();

  const limit = includesEvents ? MAX_LEADS_WITH_EVENTS : MAX_LEADS_PER_PAGE;
  for await (const id of studioIds(begin ?? null)) {
    const read = (after: string | null) => store.walkLeads(id, after, limit, filter);
    const pages = eachStoredPage(read, begin?.studioId === id ? begin.position : null);
    for await (const { records: leads, next, skipped: skippedCount, after } of pages) {
      const parts = [...splitIntoParts(leads, MAX_LEADS_PER_PAGE, ({ enquiries }) => enquiries)];
      if (parts.length === 0 && (skippedCount > 0 || next !== null)) parts.push([]);
      for (const [index, part] of parts.entries()) {
        const isLast = index === parts.length - 1;
        // An export that resumes here reads and counts unreadable leads at the end of a studio or part again.
        const position = (isLast ? next : null) ?? part.map(toPosition).at(-1) ?? after ?? toPosition(BEFORE_ALL);
        const resumeToken = resumeTokenAfter(scope, { studioId: id, position });
        const exported = { leads: part, resumeToken, skippedCount: index === 0 ? skippedCount : 0 };
        const readPartEvents = () =>
          Promise.all(
            part.map(({ id: leadId, enquiries }) => eventsOfLead({ store }, { studioId: id, leadId }, enquiries)),
          );
        yield includesEvents ? { ...exported, events: await readPartEvents() } : exported;
      }
      // A store may return without waiting for I/O. A long export would then block the event loop.
      await yieldToEventLoop();
    }
  }

  /** Yields the studios that are not complete yet. */
  async function* studioIds(begun: StudioPosition | null): AsyncGenerator<string> {
    if (studioId !== '') {
      yield studioId;
      return;
    }
    if (begun) yield begun.studioId;
    for await (const { id, isTest } of everyStudio({ store }, begun?.studioId)) if (includesTests || !isTest) yield id;
  }
}
