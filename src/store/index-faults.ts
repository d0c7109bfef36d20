import { StoreUnavailable } from './store.ts';

/** How many groups of records that stand in each other's way are told, and how many of each. */
export const MAX_GROUPS = 10;
export const MAX_IN_GROUP = 10;

/** What is answered while an index is not as it must be; the faults are sentences. */
export const nothingIsCreated = (faults: readonly string[]): StoreUnavailable =>
  new StoreUnavailable(`nothing is created: ${faults.join('. ')}`);

/**
 * Says which records stand in an index's way; undefined when none does.
 *
 * @param groups the names of those of which it allows one alone, oldest first; at most MAX_GROUPS of MAX_IN_GROUP
 */
export function saysOfDuplicates(groups: readonly (readonly string[])[]): string | undefined {
  if (groups.length === 0) return undefined;
  const told = groups.map((names) => names.join(' = ')).join('; ');
  return `of these only one each may stand, as a rule the first: ${told}${groups.length < MAX_GROUPS ? '' : '; …'}`;
}
