import type { Collection, Db } from 'mongodb';
import { STORE_CALL_MS } from '../../../common/deadlines.ts';
import type { StoreObserver } from '../store.ts';
import { Batcher } from './batcher.ts';
import { boundedCollection, type CommandStarted, type Perform } from './bounded-collection.ts';
import type { ApiKeyDocument, LeadDocument, StudioDocument } from './documents.ts';

/** The collections of the adapter. Every command is bounded in time, and observed as one for the current caller. */
export interface Collections {
  readonly leads: Collection<LeadDocument>;
  readonly apiKeys: Collection<ApiKeyDocument>;
  readonly studios: Collection<StudioDocument>;
}

/** Combines concurrent requests into one command, which is observed as one for all of their callers. */
export interface Batching {
  /** @param keyOf returns the same key for equal requests; default: no requests are equal */
  batched<Request, Answer>(
    perform: (collections: Collections, requests: readonly Request[]) => Promise<readonly Answer[]>,
    keyOf?: (request: Request) => unknown,
  ): Pick<Batcher<Request, Answer>, 'submit'>;
}

export function collectionsOf<Caller>(
  database: Db,
  perform: Perform,
  observer?: StoreObserver<Caller>,
): Collections & Batching {
  const leads = database.collection<LeadDocument>('leads');
  const apiKeys = database.collection<ApiKeyDocument>('apiKeys');
  const studios = database.collection<StudioDocument>('studios');
  const caller = () => observer?.caller();

  const observedBy = (onStart: CommandStarted | undefined): Collections => ({
    leads: boundedCollection(leads, STORE_CALL_MS, perform, onStart),
    apiKeys: boundedCollection(apiKeys, STORE_CALL_MS, perform, onStart),
    studios: boundedCollection(studios, STORE_CALL_MS, perform, onStart),
  });
  const forCaller = observedBy(
    observer && ((name, size) => observer.commandStarted({ system: 'mongodb', name, size }, [caller()])),
  );
  const forAll = (callers: readonly (Caller | undefined)[]) =>
    observer
      ? observedBy((name, size) => observer.commandStarted({ system: 'mongodb', name, size }, callers))
      : forCaller;

  return {
    ...forCaller,
    batched: (perform, keyOf) => new Batcher((requests, callers) => perform(forAll(callers), requests), caller, keyOf),
  };
}
