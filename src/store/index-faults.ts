/** The maximum number of reported groups of duplicates, and of records in a group. */
export const MAX_GROUPS = 10;
export const MAX_IN_GROUP = 10;

/** The message of the error for a write that needs an index which is missing or invalid. @param faults sentences */
export const refusalOfCreations = (faults: readonly string[]): string => `no records are created: ${faults.join('. ')}`;

/**
 * Describes the records that conflict with a unique index; undefined: none does.
 *
 * @param groups the names of the records in each group of duplicates, oldest first; at most MAX_GROUPS of MAX_IN_GROUP
 */
export function describeDuplicates(groups: readonly (readonly string[])[]): string | undefined {
  if (groups.length === 0) return undefined;
  const listed = groups.map((names) => names.join(' = ')).join('; ');
  return `duplicates, of which only one each may remain, usually the first: ${listed}${groups.length < MAX_GROUPS ? '' : '; …'}`;
}
