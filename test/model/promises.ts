import type { Answer, Request, World } from './world.ts';

/** Invariants of every state; each promise by its name. */
export const PROMISES = {
  'one lead per key': ({ rows }) => areDifferent(rows.map(({ key }) => key)),

  'one open lead per contact': ({ rows }) =>
    areDifferent(rows.filter(({ open }) => open).map(({ contact }) => contact)),

  'one open lead per contact, however it is spelled': ({ rows }) =>
    areDifferent(rows.filter(({ open }) => open).map(({ contact }) => contact.toLowerCase())),

  'a closed lead keeps no contact from anybody': ({ rows }) =>
    rows.every(({ open, claims }) => open || claims.length === 0),

  'an acknowledged lead is in the store': (world) =>
    told(world, 'created', 'replayed').every(({ lead }) => world.rows.some(({ id }) => id === lead)),

  'a lead is answered to its own request, key and data': (world, requests) =>
    told(world, 'created', 'replayed').every(({ lead, caller }) =>
      world.rows.every(
        ({ id, key, data }) => id !== lead || (key === requests[caller]?.key && data === requests[caller]?.data),
      ),
    ),

  'a lead is answered as created by the call that wrote it, and as replayed by any other': (world) =>
    told(world, 'created', 'replayed').every(({ lead, what, by }) =>
      world.rows.every((row) => row.id !== lead || (row.by === by) === (what === 'created')),
    ),

  'a conflict is with other data under the same key': (world, requests) =>
    told(world, 'conflict').every(({ caller }) =>
      world.rows.some(({ key, data }) => key === requests[caller]?.key && data !== requests[caller]?.data),
    ),

  'an open lead in the way is somebody else’s, with the same contact': (world, requests) =>
    told(world, 'already open').every(({ lead, caller }) =>
      world.rows.some(
        ({ id, key, contact, hadContacts = [] }) =>
          id === lead &&
          key !== requests[caller]?.key &&
          // Its contact may be corrected right after the caller was answered.
          [contact, ...hadContacts].some((each) => each.toLowerCase() === requests[caller]?.contact.toLowerCase()),
      ),
    ),

  'whose key has a lead is not told of another one that is open': (world) =>
    told(world, 'already open').every(({ keyWasFree }) => keyWasFree),

  'a refused call left nothing': (world) =>
    told(world, 'conflict', 'already open').every(({ by }) => world.rows.every((row) => row.by !== by)),

  'no lead is in its own way': ({ movers }) => movers.every(({ at }) => at !== 'in its own way'),
} as const satisfies Record<string, (world: World, requests: readonly Request[]) => boolean>;

/** The answers that callers received, of the given kinds. */
function told({ callers }: World, ...kinds: Answer['what'][]): (Answer & { readonly caller: number })[] {
  return callers.flatMap((each, caller) =>
    each.at === 'told' && kinds.includes(each.what) ? { ...each, caller } : [],
  );
}

function areDifferent(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}
