import type { Clock, NewId } from '../domain/new-id.ts';
import type { Store } from '../store/store.ts';

/** The dependencies of all use cases together; each use case declares the part that it uses. */
export interface Dependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly newId: NewId;
}
