import { inspect } from 'node:util';
import type { LeadSource, Member } from '../../src/domain/studio.ts';
import type { Store, UnreadableRecord } from '../../src/store/store.ts';

/** A store with nothing in it, of which a test may do what it likes. */
export interface OpenedStore {
  readonly store: Store;
  /** Closes the store and opens its data again, like a restart of the process. */
  reopen(): Promise<Store>;
  /** A second store on the same data, as a second process would have. */
  another(): Promise<Store>;
  /** What the stores have reported as unreadable. */
  readonly reported: readonly UnreadableRecord[];
  /** Writes into records that are there, past the store, as somebody's hand would. */
  damage(damage: Damage, ...records: readonly { readonly studioId: string; readonly id: string }[]): Promise<void>;
  /** Gives a studio members and sources, past the store: as many as a release without a bound could. */
  fill(content: { readonly members?: readonly Member[]; readonly sources?: readonly LeadSource[] }): Promise<void>;
  /** Makes active studios past the store, whatever their ids are. */
  makeStudios(...ids: readonly string[]): Promise<void>;
  /** Closes every store that was opened, and removes the data. */
  dispose(): Promise<void>;
}

/** What may stand in a field of a record that this release did not write; undefined: nothing. */
export interface Damage {
  readonly kind:
    | 'lead'
    | 'creation'
    | 'original'
    | 'claim'
    | 'key'
    | 'studio'
    | 'renewal'
    | 'member'
    | 'source'
    | 'event'
    | 'lead with events'
    | 'key with events';
  /** As the database calls it. */
  readonly field: string;
  readonly value: unknown;
}

/** How a test is named that does the damage. */
export const titleOf = ({ kind, field, value }: Damage) =>
  `a ${kind} whose ${field} is ${value instanceof Date ? 'a date' : inspect(value, { breakLength: Infinity }).slice(0, 30)}`;

/** The damage that leaves a lead without a name. */
export function emptyName(damages: readonly Damage[]): Damage {
  const found = damages.find(
    ({ kind, field, value }) => kind === 'lead' && /^display_?name$/i.test(field) && value === '',
  );
  if (!found) throw new Error('the adapter has no damage that empties the name of a lead');
  return found;
}
