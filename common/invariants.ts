/**
 * The invariants, each checked where it is relied on. A broken one fails the request or item at hand with an internal error, never the
 * process. These texts contain no data.
 */
const MEANINGS = {
  acknowledged_at_most_named: 'a call acknowledges no more leads than it names',
  caller_of_admitted_call: 'an admitted call has a caller',
  creation_has_outcome: 'a lead that was not created has an earlier one, or a holder of its contact',
  credential_of_secret: 'a credential has the hash by which it was found, and a key of its studio',
  enum_on_wire: 'a word of the domain has a number on the wire',
  key_check_in_order: 'a key is found, counted and sent to the core in this order',
  lead_of_studio: 'a lead that is read belongs to the studio that it was read from',
  mutex_key_held_once: 'no work holds a key of a mutex that other work holds',
  no_transaction_left_open: 'no transaction is open before a group commit, nor after it',
  one_row_by_number: 'a write by the number of a row changes that row',
  page_moves: 'the next page does not begin where this one did',
  page_within_limit: 'a page has no more records than were asked for',
  pending_not_negative: 'no more is finished than was begun',
  quota_left_not_negative: 'the rest of a quota is not negative, and its window ends in the future',
  result_per_item: 'a message has as many results as items',
  revision_grows: 'a change of a lead has a higher revision than the one before',
  update_time_grows: 'a change of a lead has a later time than the one before',
} as const;

export type Invariant = keyof typeof MEANINGS;

/** How often each invariant was broken in this process. */
const counts = new Map(Object.keys(MEANINGS).map((name) => [name as Invariant, 0]));
export const brokenInvariants: ReadonlyMap<Invariant, number> = counts;

/** Reports a broken invariant, which is a bug. */
export class BrokenInvariant extends Error {
  constructor(invariant: Invariant) {
    super(`the invariant ${invariant} is broken: ${MEANINGS[invariant]}`);
    this.name = 'BrokenInvariant';
    counts.set(invariant, (counts.get(invariant) ?? 0) + 1);
  }
}

/** Throws BrokenInvariant unless the invariant holds. Never call this in callbacks of timers and events: an error there ends the process. */
export function assert(holds: boolean, invariant: Invariant): asserts holds {
  if (!holds) throw new BrokenInvariant(invariant);
}
