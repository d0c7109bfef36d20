import type { Collection, Db } from 'mongodb';
import { STORE_CALL_MS } from '../../../common/deadlines.ts';
import type { StoreObserver } from '../store.ts';
import { Batcher } from './batcher.ts';
import { boundedCollection, type CommandStarted } from './bounded-collection.ts';
import type { ApiKeyDocument, LeadDocument, StudioDocument } from './documents.ts';

/** What the adapter keeps records in. Every command ends, and is told as one for whoever asks at that moment. */
export interface Collections {
  readonly leads: Collection<LeadDocument>;
  readonly apiKeys: Collection<ApiKeyDocument>;
  readonly studios: Collection<StudioDocument>;
}

/** What several ask for, done with collections whose commands are told as for all of them. */
export interface Batching {
  /** @param nameOf the same for requests that are to get the same answer; unless told, each is one of its own */
  batched<Request, Answer>(
    perform: (collections: Collections, requests: readonly Request[]) => Promise<readonly Answer[]>,
    nameOf?: (request: Request) => unknown,
  ): Pick<Batcher<Request, Answer>, 'ask'>;
}

/** @param observer is told of every command */
export function collectionsOf<Caller>(database: Db, observer?: StoreObserver<Caller>): Collections & Batching {
  const leads = database.collection<LeadDocument>('leads');
  const apiKeys = database.collection<ApiKeyDocument>('apiKeys');
  const studios = database.collection<StudioDocument>('studios');
  const caller = () => observer?.caller();

  const toldBy = (begins: CommandStarted | undefined): Collections => ({
    leads: boundedCollection(leads, STORE_CALL_MS, begins),
    apiKeys: boundedCollection(apiKeys, STORE_CALL_MS, begins),
    studios: boundedCollection(studios, STORE_CALL_MS, begins),
  });
  const forAsker = toldBy(
    observer && ((name, size) => observer.commandStarted({ system: 'mongodb', name, size }, [caller()])),
  );
  // Where nobody is told, there is no difference.
  const forAll = (callers: readonly (Caller | undefined)[]) =>
    observer ? toldBy((name, size) => observer.commandStarted({ system: 'mongodb', name, size }, callers)) : forAsker;

  return {
    ...forAsker,
    batched: (perform, nameOf) =>
      new Batcher((requests, callers) => perform(forAll(callers), requests), caller, nameOf),
  };
}
