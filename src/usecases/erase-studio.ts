import { setTimeout as sleep } from 'node:timers/promises';
import { STUDIO_ENDS_MS } from '../../common/deadlines.ts';
import { type Actor, actorIn, type Requester } from '../domain/audit.ts';
import { idBeforePage, pageTokenAfter } from '../domain/cursor.ts';
import { Faults, Refusal } from '../domain/refusal.ts';
import { UnreadableRecord } from '../store/store.ts';
import type { Changing, Reading } from './dependencies.ts';
import { listEveryLeadSource } from './members-and-sources.ts';
import { notePageFaults, noteRequester } from './requests.ts';
import { existingStudio } from './studios.ts';

/** A request to erase a studio, not yet checked. */
export interface EraseStudioCommand extends Requester {
  readonly studioId: string;
  /** The same once more. */
  readonly confirmStudioId: string;
  /** Empty: from the beginning. */
  readonly pageToken: string;
}

/** What a call has done. */
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
} as const;

/** The numbers of leads that a call looks for holds at, and that it erases. */
const MAX_EXAMINED = 5000;
const MAX_ERASED = 200;

/** How long a call waits, so that its caller does not ask all the time; milliseconds. */
const WAIT_MS = 1000;

/** Lower than the id of any lead. */
const BEFORE_ALL_IDS = '00000000-0000-0000-0000-000000000000';

/** The maximum number of studios that a process knows to have ended; it waits once more for one that it has forgotten. */
const MAX_ENDED = 100;

/** How long this process has known that studios have ended, by a clock that nobody sets: those of cores may differ. */
export class EndedStudios {
  readonly #since = new Map<string, number>();

  /** Notes that a studio has ended. Returns for how long that has been known; milliseconds. */
  knownMs(studioId: string): number {
    const now = performance.now();
    const since = this.#since.get(studioId) ?? now;
    this.#since.set(studioId, since);
    for (const oldest of this.#since.keys()) if (this.#since.size > MAX_ENDED) this.#since.delete(oldest);
    return now - since;
  }

  /** Notes that a studio has not ended. */
  forget(studioId: string): void {
    this.#since.delete(studioId);
  }
}

/** Which studio is erased, and by whom. */
type Erasing = Actor & Pick<EraseStudioCommand, 'studioId'>;

/**
 * Does a part of ending a studio and erasing what it has: it looks for holds, page by page, then ends the studio, waits until no
 * creation that has begun before can be written any more, and erases the leads, page by page. Nothing is kept between the
 * calls but the studio's end and their tokens, so any of them may be repeated, or all from the beginning.
 *
 * @param known of this process
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND, LEAD_HELD
 */
export async function eraseStudio(
  deps: Changing,
  known: EndedStudios,
  { studioId, confirmStudioId, pageToken, ...by }: EraseStudioCommand,
): Promise<StudioErasure> {
  const faults = new Faults();
  if (confirmStudioId !== studioId) {
    faults.note('studioId', 'must be the same as confirmStudioId');
    faults.note('confirmStudioId', 'must be the same as studioId');
  }
  noteRequester(faults, by);
  const examined = pageToken === '' ? BEFORE_ALL_IDS : idBeforePage('heldLeads', studioId, pageToken);
  const ended = idBeforePage('endedStudio', studioId, pageToken);
  notePageFaults(faults, { pageSize: 0, pageToken }, examined ?? ended, 'must be unchanged, of this studio');
  const { status } = await existingStudio(deps.store, studioId, faults);
  const erasing = { studioId, ...actorIn({ ...by, memberId: by.memberId ?? null }) };
  if (status !== 'ended') known.forget(studioId);
  // A core of release 1.1 may have put it since.
  else if (ended !== undefined) return eraseLeads(deps, erasing, { after: ended, endedMs: known.knownMs(studioId) });
  return examineAndEnd(deps, known, erasing, examined ?? BEFORE_ALL_IDS);
}

/** Looks for holds, and then ends the studio. */
async function examineAndEnd(
  deps: Changing,
  known: EndedStudios,
  erasing: Erasing,
  after: string,
): Promise<StudioErasure> {
  const { studioId } = erasing;
  const { leads, next } = await deps.store.walkUnerasedLeads(studioId, after, MAX_EXAMINED);
  const held = leads.find(({ isHeld }) => isHeld);
  if (held) throw leadHeld(held.id);
  if (next !== null) return { ...NOTHING, nextPageToken: pageTokenAfter('heldLeads', studioId, next) };
  const ended = await end(deps, erasing);
  known.knownMs(studioId);
  return { ...NOTHING, ...ended, nextPageToken: pageTokenAfter('endedStudio', studioId, BEFORE_ALL_IDS) };
}

/** @param endedMs for how long the studio has ended, at least */
async function eraseLeads(
  deps: Changing,
  erasing: Erasing,
  { after, endedMs }: { readonly after: string; readonly endedMs: number },
): Promise<StudioErasure> {
  const { studioId } = erasing;
  if (endedMs < STUDIO_ENDS_MS) {
    await sleep(Math.min(STUDIO_ENDS_MS - endedMs, WAIT_MS));
    return { ...NOTHING, nextPageToken: pageTokenAfter('endedStudio', studioId, after) };
  }
  const { leads, next } = await deps.store.walkUnerasedLeads(studioId, after, MAX_ERASED);
  const outcomes = await Promise.all(leads.map(({ id }) => eraseOne(deps, erasing, id)));
  const count = (kind: (typeof outcomes)[number]) => outcomes.filter((each) => each === kind).length;
  const report = { ...NOTHING, erasedLeadCount: count('erased'), skippedLeadCount: count('skipped') };
  if (next !== null) return { ...report, nextPageToken: pageTokenAfter('endedStudio', studioId, next) };
  await deps.store.removeRequests(studioId);
  // Keys, members and sources, too, may have come by calls that had begun before.
  return { ...report, ...(await end(deps, erasing)), nextPageToken: '' };
}

async function eraseOne({ store, clock }: Changing, erasing: Erasing, leadId: string) {
  try {
    const outcome = await store.eraseLead({ ...erasing, leadId, now: clock() });
    if (outcome.kind === 'held') throw leadHeld(leadId);
    return outcome.kind === 'erased' && outcome.isNew ? 'erased' : 'gone';
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    return 'skipped';
  }
}

/** Ends the studio; returns what went with it. */
async function end({ store, clock }: Changing, { studioId, ...actor }: Erasing) {
  const by = { ...actor, now: clock() };
  const outcome = await store.endStudio(studioId, by);
  if (outcome.kind !== 'ended') throw new Refusal(outcome.kind === 'held' ? 'LEAD_HELD' : 'STUDIO_NOT_FOUND');
  const keys = (await store.listLiveApiKeys(studioId)).filter(({ revokedAt }) => revokedAt === null);
  const revoked = await Promise.all(keys.map(({ id }) => store.revokeApiKey(studioId, id, by)));
  // Another call may have revoked one meanwhile.
  const own = revoked.filter((key) => key?.revokedAt?.getTime() === by.now.getTime());
  const { members: removedMemberCount, sources: removedSourceCount } = outcome;
  return { revokedKeyCount: own.length, removedMemberCount, removedSourceCount };
}

const leadHeld = (leadId: string): Refusal => new Refusal('LEAD_HELD', undefined, { metadata: { leadId } });

/** What there is to erase in a studio. */
export async function examineStudio({ store }: Reading, studioId: string) {
  const { hold } = await existingStudio(store, studioId, new Faults());
  const counts = { leads: 0, held: 0 };
  for (let after: string | null = BEFORE_ALL_IDS; after !== null; ) {
    const page: Awaited<ReturnType<typeof store.walkUnerasedLeads>> = await store.walkUnerasedLeads(
      studioId,
      after,
      MAX_EXAMINED,
    );
    counts.leads += page.leads.length;
    counts.held += page.leads.filter(({ isHeld }) => hold || isHeld).length;
    after = page.next;
  }
  const keys = (await store.listLiveApiKeys(studioId)).filter(({ revokedAt }) => revokedAt === null).length;
  const sources = (await listEveryLeadSource({ store }, studioId)).length;
  return { ...counts, keys, sources };
}
