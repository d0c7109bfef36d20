import type { Clock, NewId } from '../domain/new-id.ts';
import type { Store } from '../store/store.ts';

/** The dependencies of a use case that only reads. */
export interface Reading {
  readonly store: Store;
}

/** The dependencies of a use case that changes a record. */
export interface Changing extends Reading {
  readonly clock: Clock;
}

/** The dependencies of a use case that creates a record. They include all others. */
export interface Dependencies extends Changing {
  readonly newId: NewId;
}
