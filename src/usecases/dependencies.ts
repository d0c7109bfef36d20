import type { Clock, NewId } from '../domain/new-id.ts';
import type { Store } from '../store/store.ts';

/** The names of the store's reads. Reads of deliveries distribute pending changes first. */
type Read = `${'find' | 'list' | 'walk' | 'measure' | 'presence' | 'is'}${string}`;

/** The dependencies of a use case that only reads. */
export interface Reading {
  readonly store: Pick<Store, Extract<keyof Store, Read>>;
}

/** The dependencies of a use case that changes a record. */
export interface Changing {
  readonly store: Store;
  readonly clock: Clock;
}

/** The dependencies of a use case that creates a record. They include all others. */
export interface Dependencies extends Changing {
  readonly newId: NewId;
}
