import { assert } from '../../common/invariants.ts';
import { pageTokenFault } from '../../common/rules/field-rules.ts';
import { studioBeforePage, studioTokenAfter } from '../domain/cursor.ts';
import { Faults } from '../domain/refusal.ts';
import type { Studio } from '../domain/studio.ts';
import type { DirectoryStore } from '../store/store.ts';

/** The number of studios on a page. */
const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

interface ListStudiosDependencies {
  readonly store: Pick<DirectoryStore, 'listStudios'>;
}

/** A request for one page of studios, not yet checked. */
export interface ListStudiosQuery {
  /** 0: the default size. Above the maximum: the maximum. */
  readonly pageSize: number;
  /** Empty: the first page. */
  readonly pageToken: string;
}

/**
 * Lists all studios, by id.
 *
 * @returns one page; the token is empty on the last one
 * @throws Refusal INVALID_REQUEST
 */
export async function listStudios(
  { store }: ListStudiosDependencies,
  { pageSize, pageToken }: ListStudiosQuery,
): Promise<{ readonly studios: readonly Studio[]; readonly nextPageToken: string }> {
  const after = pageToken === '' ? null : studioBeforePage(pageToken);
  const faults = new Faults();
  faults.note('pageSize', pageSize < 0 ? 'must not be negative' : undefined);
  if (after === undefined) faults.note('pageToken', pageTokenFault(pageToken) ?? 'must be unchanged');
  faults.refuseIfAny();
  const limit = Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
  const { records: studios, next } = await store.listStudios(after ?? null, limit);
  return { studios, nextPageToken: next === null ? '' : studioTokenAfter(next) };
}

/** Yields the id of a studio, or those of all; undefined: all. */
export async function* studioIds(deps: ListStudiosDependencies, only: string | undefined): AsyncGenerator<string> {
  if (only !== undefined) yield only;
  else for await (const { id } of everyStudio(deps)) yield id;
}

/**
 * Yields all studios, by id, with one page in memory at a time.
 *
 * @param after yields only studios with a higher id; null: all
 */
export async function* everyStudio(
  { store }: ListStudiosDependencies,
  after: string | null = null,
): AsyncGenerator<Studio> {
  for (let position = after; ; ) {
    const { records, next } = await store.listStudios(position, MAX_PAGE_SIZE);
    yield* records;
    if (next === null) return;
    assert(next !== position, 'page_moves');
    position = next;
  }
}
