import type { Clock, NewId } from '../domain/new-id.ts';
import type { Store } from '../store/store.ts';

/** The dependencies of all use cases together. */
export interface Dependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly newId: NewId;
}

/** Those of a use case that only reads, and of one that changes a record. */
export type Reading = Pick<Dependencies, 'store'>;
export type Changing = Pick<Dependencies, 'store' | 'clock'>;
