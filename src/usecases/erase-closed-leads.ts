import { assert } from '../../common/invariants.ts';
import type { Actor } from '../domain/audit.ts';
import { isOpen, type Lead } from '../domain/lead.ts';
import type { Clock } from '../domain/new-id.ts';
import type { DirectoryStore, LeadErasureStore, LeadStore } from '../store/store.ts';
import { studioIds } from './list-studios.ts';

/** The number of leads that are read at a time and erased concurrently. */
const MAX_LEADS_PER_PAGE = 100;

interface ErasureDependencies {
  readonly store: Pick<DirectoryStore, 'listStudios'> &
    Pick<LeadStore, 'walkLeads'> &
    Pick<LeadErasureStore, 'eraseLead'>;
  readonly clock: Clock;
}

/** Selects closed leads that have not changed since a time. */
export interface ClosedLeads {
  /** Undefined: all studios. */
  readonly studioId: string | undefined;
  readonly before: Date;
}

/** Returns how many leads are selected. */
export async function countClosedLeads(
  { store }: Pick<ErasureDependencies, 'store'>,
  which: ClosedLeads,
): Promise<number> {
  let count = 0;
  for await (const leads of pagesOf(store, which)) count += leads.length;
  return count;
}

/**
 * Erases the selected leads. An interrupted run can be repeated: it skips leads that are already erased.
 *
 * @param onProgress called with the number of leads erased so far
 * @returns the number of leads erased
 */
export async function eraseClosedLeads(
  { store, clock }: ErasureDependencies,
  which: ClosedLeads & Actor,
  onProgress: (count: number) => void,
): Promise<number> {
  let count = 0;
  for await (const leads of pagesOf(store, which)) {
    const { memberId, caller } = which;
    const outcomes = await Promise.all(
      // A lead that was reopened or corrected since it was read is no longer selected.
      leads.map(({ studioId, id: leadId, updatedAt: expectedUpdatedAt }) =>
        store.eraseLead({ studioId, leadId, memberId, caller, now: clock(), expectedUpdatedAt }),
      ),
    );
    count += outcomes.filter(({ kind }) => kind === 'erased').length;
    onProgress(count);
  }
  return count;
}

async function* pagesOf(
  store: ErasureDependencies['store'],
  { studioId, before }: ClosedLeads,
): AsyncGenerator<Lead[]> {
  for await (const id of studioIds({ store }, studioId)) {
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<LeadStore['walkLeads']>> = await store.walkLeads(id, after, MAX_LEADS_PER_PAGE);
      yield page.records.filter(({ stage, updatedAt }) => !isOpen(stage) && updatedAt < before);
      assert(page.next === null || page.next !== after, 'page_moves');
      after = page.next;
    } while (after !== null);
  }
}
