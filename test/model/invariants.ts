import type { Answer, Request, World } from './world.ts';

/** Invariants of every state; each promise by its name. */
export const PROMISES = {
  'one lead per key': ({ rows }) => areDifferent(rows.map(({ key }) => key)),

  'one open lead per contact': ({ rows }) =>
    areDifferent(rows.filter(({ open }) => open).map(({ contact }) => contact)),

  'a closed lead has no claims': ({ rows }) => rows.every(({ open, claims }) => open || claims.length === 0),

  'an acknowledged lead is in the store': (world) =>
    answersOf(world, 'created', 'replayed').every(({ lead }) => world.rows.some(({ id }) => id === lead)),

  'a returned lead has the key and the data of the request': (world, requests) =>
    answersOf(world, 'created', 'replayed').every(({ lead, caller }) =>
      world.rows.every(
        ({ id, key, data }) => id !== lead || (key === requests[caller]?.key && data === requests[caller]?.data),
      ),
    ),

  'a lead is returned as created by the call that wrote it, and as replayed by all others': (world) =>
    answersOf(world, 'created', 'replayed').every(({ lead, what, by }) =>
      world.rows.every((row) => row.id !== lead || (row.by === by) === (what === 'created')),
    ),

  'a conflict means other data under the same key': (world, requests) =>
    answersOf(world, 'conflict').every(({ caller }) =>
      world.rows.some(({ key, data }) => key === requests[caller]?.key && data !== requests[caller]?.data),
    ),

  'a conflicting open lead has another key and the same contact': (world, requests) =>
    answersOf(world, 'already open').every(({ lead, caller }) =>
      world.rows.some(
        ({ id, key, contact, formerContacts = [] }) =>
          id === lead &&
          key !== requests[caller]?.key &&
          // Its contact may be corrected right after the caller was answered.
          [contact, ...formerContacts].some((each) => each.toLowerCase() === requests[caller]?.contact.toLowerCase()),
      ),
    ),

  'a key with a lead never gets a conflict with another open lead': (world) =>
    answersOf(world, 'already open').every(({ keyWasFree }) => keyWasFree),

  'a refused call wrote nothing': (world) =>
    answersOf(world, 'conflict', 'already open').every(({ by }) => world.rows.every((row) => row.by !== by)),

  'no lead conflicts with itself': ({ movers }) => movers.every(({ at }) => at !== 'in conflict with itself'),
} as const satisfies Record<string, (world: World, requests: readonly Request[]) => boolean>;

/** The answers that callers received, of the given kinds. */
function answersOf({ callers }: World, ...kinds: Answer['what'][]): (Answer & { readonly caller: number })[] {
  return callers.flatMap((each, caller) =>
    each.at === 'answered' && kinds.includes(each.what) ? { ...each, caller } : [],
  );
}

function areDifferent(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}
