import type { Clock } from '../domain/clock.ts';
import type { NewId } from '../domain/new-id.ts';
import type { Store } from '../store/store.ts';

/** What all use cases together need; each asks for the part it uses. */
export interface Dependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly newId: NewId;
}
