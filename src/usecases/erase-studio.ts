import { setTimeout as sleep } from 'node:timers/promises';
import { STUDIO_ENDS_MS } from '../../common/deadlines.ts';
import type { Requester } from '../domain/audit.ts';
import { idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import { LOWEST_ID } from '../domain/new-id.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import type { Changing, Reading } from './dependencies.ts';
import { eraseReadable, isNewErasure } from './erase-leads.ts';
import { listEveryLeadSource } from './members-and-sources.ts';
import { eachStoredPage, noteRequester, requestedBy, startOfPage } from './requests.ts';
import { existingStudio } from './studios.ts';

export interface EraseStudioCommand extends Erasing {
  /** The same id again. */
  readonly confirmStudioId: string;
  /** Empty: from the beginning. */
  readonly pageToken: string;
}

export interface StudioErasure {
  readonly erasedLeadCount: number;
  readonly skippedLeadCount: number;
  readonly revokedKeyCount: number;
  readonly removedMemberCount: number;
  readonly removedSourceCount: number;
  /** Empty: all is erased. */
  readonly nextPageToken: string;
}

const NOTHING = {
  erasedLeadCount: 0,
  skippedLeadCount: 0,
  revokedKeyCount: 0,
  removedMemberCount: 0,
  removedSourceCount: 0,
};

/** The number of leads that are counted at a time. */
const MAX_COUNTED = 5000;

/** The number of leads that a call erases. */
const MAX_ERASED = 200;

/** How long a call waits, so that its caller does not poll constantly; milliseconds. */
const WAIT_MS = 1000;

/** The maximum number of ended studios that a process remembers. For a forgotten one it waits once more. */
const MAX_ENDED = 100;

/** Measures how long this process has known of ended studios. Uses its monotonic clock, because cores' clocks may differ. */
export class EndedStudios {
  readonly #since = new Map<string, number>();

  /** Notes that a studio has ended, and returns for how long this process has known it. */
  knownMs(studioId: string): number {
    const now = performance.now();
    const since = this.#since.get(studioId) ?? now;
    this.#since.set(studioId, since);
    for (const oldest of this.#since.keys()) if (this.#since.size > MAX_ENDED) this.#since.delete(oldest);
    return now - since;
  }

  forget(studioId: string): void {
    this.#since.delete(studioId);
  }
}

interface Erasing extends Requester {
  readonly studioId: string;
}

/**
 * Does one part of ending a studio and erasing its data. It ends the studio, waits until creations that began before
 * can no longer be written, and erases the leads page by page. The progress is in the studio's status and the caller's
 * token only. Any call may therefore be repeated, or all from the beginning.
 *
 * @param endedStudios the ended studios that this process knows
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 */
export async function eraseStudio(
  deps: Changing,
  endedStudios: EndedStudios,
  { studioId, confirmStudioId, pageToken, ...by }: EraseStudioCommand,
): Promise<StudioErasure> {
  const faults = new Faults();
  if (confirmStudioId !== studioId) {
    faults.note('studioId', 'must be the same as confirmStudioId');
    faults.note('confirmStudioId', 'must be the same as studioId');
  }
  noteRequester(faults, by);
  const idIn = (token: string) => idBeforePage('endedStudio', studioId, token);
  const after = startOfPage(faults, { pageSize: 0, pageToken }, idIn, ', of this studio');
  const { status } = await existingStudio(deps.store, studioId, faults);
  const erasing = { studioId, ...by };
  // A studio that is known to have ended is active again if an earlier backup was restored.
  if (status !== 'ended') endedStudios.forget(studioId);
  else if (after) return eraseLeads(deps, erasing, { after, endedMs: endedStudios.knownMs(studioId) });
  const ended = await endStudio(deps, erasing);
  endedStudios.knownMs(studioId);
  return { ...NOTHING, ...ended, nextPageToken: pageTokenAfter('endedStudio', studioId, LOWEST_ID) };
}

/** @param endedMs the minimum time since the studio ended */
async function eraseLeads(
  deps: Changing,
  erasing: Erasing,
  { after, endedMs }: { readonly after: string; readonly endedMs: number },
): Promise<StudioErasure> {
  const { store, clock } = deps;
  const { studioId, ...by } = erasing;
  if (endedMs < STUDIO_ENDS_MS) {
    await sleep(Math.min(STUDIO_ENDS_MS - endedMs, WAIT_MS));
    return { ...NOTHING, nextPageToken: pageTokenAfter('endedStudio', studioId, after) };
  }
  const { leads, next } = await store.walkUnerasedLeads(studioId, after, MAX_ERASED);
  const erase = (leadId: string) => eraseReadable(store, { studioId, leadId, ...requestedBy(by, clock) });
  const outcomes = await Promise.all(leads.map(({ id }) => erase(id)));
  const skippedLeadCount = outcomes.filter(({ kind }) => kind === 'unreadable').length;
  const report = { ...NOTHING, erasedLeadCount: outcomes.filter(isNewErasure).length, skippedLeadCount };
  if (next !== null) return { ...report, nextPageToken: pageTokenAfter('endedStudio', studioId, next) };
  await store.removeRequests(studioId);
  // Calls that began earlier may also have added keys, members and sources.
  return { ...report, ...(await endStudio(deps, erasing)), nextPageToken: '' };
}

/** Ends the studio, and returns the numbers of revoked keys and of removed members and sources. */
async function endStudio({ store, clock }: Changing, { studioId, ...requester }: Erasing) {
  const by = requestedBy(requester, clock);
  const outcome = await store.endStudio(studioId, by);
  if (outcome.kind !== 'ended') throw new Refusal('STUDIO_NOT_FOUND');
  const keys = (await store.listLiveApiKeys(studioId)).filter(({ revokedAt }) => revokedAt === null);
  const revoked = await Promise.all(keys.map(({ id }) => store.revokeApiKey(studioId, id, by)));
  // Another call may have revoked a key meanwhile.
  const newlyRevoked = revoked.filter((key) => key?.revokedAt?.getTime() === by.now.getTime());
  const { members: removedMemberCount, sources: removedSourceCount } = outcome;
  return { revokedKeyCount: newlyRevoked.length, removedMemberCount, removedSourceCount };
}

export async function examineStudio({ store }: Reading, studioId: string) {
  await existingStudio(store, studioId, new Faults());
  let leads = 0;
  for await (const page of eachStoredPage((after) => store.walkUnerasedLeads(studioId, after, MAX_COUNTED)))
    leads += page.leads.length;
  const keys = (await store.listLiveApiKeys(studioId)).filter(({ revokedAt }) => revokedAt === null).length;
  const sources = (await listEveryLeadSource({ store }, studioId)).length;
  return { leads, keys, sources };
}
