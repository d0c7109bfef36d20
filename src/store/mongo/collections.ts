import {
  type ClientSession,
  type Collection,
  type CommandOperationOptions,
  type Db,
  type Document,
  ReadConcern,
  type ReadConcernLevel,
} from 'mongodb';
import { STORE_CALL_MS } from '../../../common/deadlines.ts';
import { assert } from '../../../common/invariants.ts';
import type { SlowCommands, StoreCommand, StoreObserver } from '../port/listeners.ts';
import {
  type ApiKeyDocument,
  type ConsumersDocument,
  type DeliveryDocument,
  type RequestDocument,
  type RetentionTimeDocument,
  STUDIO_FIELDS,
  type StudioDocument,
} from './documents.ts';
import type { OldEventsDocument } from './history.ts';
import type { LeadDocument } from './lead-documents.ts';
import { READ } from './queries.ts';
import { isDuplicate } from './server-refusal.ts';

export type Collections = Readonly<ReturnType<typeof createCollections>>;

/** Creates the collections of the adapter. Every command has a timeout, and is observed. */
export function createCollections(database: Db, perform: Perform, observer?: StoreObserver, slow?: SlowCommands) {
  const bounded = <Schema extends Document>(name: string) =>
    boundedCollection(database.collection<Schema>(name), STORE_CALL_MS, perform, observer, slow);
  return {
    leads: bounded<LeadDocument>('leads'),
    apiKeys: bounded<ApiKeyDocument>('apiKeys'),
    studios: bounded<StudioDocument>('studios'),
    feed: bounded<ConsumersDocument>('feed'),
    retention: bounded<RetentionTimeDocument>('feed'),
    deliveries: bounded<DeliveryDocument>('deliveries'),
    requests: bounded<RequestDocument>('requests'),
    oldEvents: bounded<OldEventsDocument>('oldEvents'),
  };
}

/** The command behind each method of the adapter, and the position of its options. */
const COMMANDS: Readonly<Record<string, readonly [name: StoreCommand['name'], optionsAt: number]>> = {
  find: ['find', 1],
  findOne: ['find', 1],
  insertOne: ['insert', 1],
  insertMany: ['insert', 1],
  updateOne: ['update', 2],
  updateMany: ['update', 2],
  deleteMany: ['update', 1],
  bulkWrite: ['update', 1],
  countDocuments: ['find', 1],
};

export type Perform = <Result>(
  name: StoreCommand['name'],
  command: (session: ClientSession) => Promise<Result>,
) => Promise<Result>;

/**
 * Returns a collection whose commands have a timeout, are causally consistent and observed. The driver's own command
 * monitoring would parse every response a second time. A cursor has only `toArray`: its order and limit are options.
 *
 * @param timeoutMs timeout of a command, including the wait for a connection and the driver's retry. The driver bounds
 *   each step. But a command that it sends just as its connection is lost never ends, and blocks everything behind it
 */
export function boundedCollection<Schema extends Document>(
  collection: Collection<Schema>,
  timeoutMs: number,
  perform: Perform,
  observer: StoreObserver | undefined,
  slow?: SlowCommands,
): Collection<Schema> {
  const createCommandOptions = (session: ClientSession): CommandOperationOptions => ({
    session,
    // Each command gets an object of its own, because the driver adds the session's time to it.
    readConcern: new ReadConcern((collection.readConcern?.level ?? 'majority') as ReadConcernLevel),
  });
  const observe = async <Result>(
    name: StoreCommand['name'],
    { size, method, filter }: { readonly size: number; readonly method: string; readonly filter: unknown },
    command: (options: CommandOperationOptions) => Promise<Result>,
  ): Promise<Result> => {
    const finish = observer?.({ name, size });
    const began = performance.now();
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`the driver did not end a command within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const result = await Promise.race([perform(name, (session) => command(createCommandOptions(session))), timeout]);
      finish?.(true);
      return result;
    } catch (error) {
      // A refusal by a unique index is an expected result.
      finish?.(isDuplicate(error));
      throw error;
    } finally {
      clearTimeout(timer);
      const durationMs = performance.now() - began;
      if (slow && durationMs >= slow.fromMs) {
        slow.report(`${collection.collectionName}.${method} ${describeShape(filter)}`, durationMs);
      }
    }
  };
  return new Proxy(collection, {
    get(target, name) {
      const method = Reflect.get(target, name);
      const [command, optionsAt = 0] = COMMANDS[String(name)] ?? [];
      if (!command) return method;
      return (...args: unknown[]) => {
        const size = name === 'insertMany' ? (args[0] as unknown[]).length : 1;
        const filter = command === 'insert' ? {} : args[0];
        const run = () =>
          observe(command, { size, method: String(name), filter }, (options) => {
            const all = args.toSpliced(optionsAt, 1, { ...(args[optionsAt] as object), ...options });
            const result = method.apply(target, all);
            return name === 'find' ? result.toArray() : result;
          });
        // The driver's cursor takes its session when created, so it is created when read.
        return name === 'find' ? { toArray: run } : run();
      };
    },
  });
}

/** Returns the names in a filter, a document or the first of several, without their values. */
function describeShape(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${describeShape(value[0])}]`;
  if (value === null || typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return '?';
  // The members and sources of a studio are fields named by their ids.
  const hideId = (name: string) => name.replace(/(?<=^(?:members|sources)\.).*/, '?');
  return `{${Object.entries(value).map(([name, each]) => `${hideId(name)}: ${describeShape(each)}`)}}`;
}

const MAX_BATCH_SIZE = 64;

/** The maximum number of concurrent batches. Requests accumulate meanwhile, so batches grow with the load. */
const MAX_BATCHES_IN_FLIGHT = 4;

/** Submits requests that are combined. */
export interface Batched<Request, Result> {
  /** @param deadline the request is not sent after it */
  submit(request: Request, deadline: AbortSignal): Promise<Result>;
}

/**
 * Combines concurrent requests into one database command, because a command costs many times as much as a document.
 * Equal requests are sent once, however many there are. A single request is not delayed. A batch reads only after all
 * of its requests arrived.
 *
 * @param perform returns a result for each request, in order; if it rejects, all requests do
 * @param toKey returns the same key for equal requests; default: no requests are equal
 */
export function requestBatcher<Request, Result>(
  perform: (requests: readonly Request[]) => Promise<readonly Result[]>,
  toKey: (request: Request) => unknown = (request) => request,
): Batched<Request, Result> {
  type Pending = Pick<PromiseWithResolvers<Result>, 'resolve' | 'reject'> & {
    readonly request: Request;
    readonly deadline: AbortSignal;
  };
  /** Equal requests, which share one result, by key, in the order of the first one's arrival. */
  const pending = new Map<unknown, Pending[]>();
  let inFlight = 0;
  let isScheduled = false;

  /** Sends a batch at the end of the event loop's turn, so that it combines all requests of the turn. */
  function schedule(): void {
    if (isScheduled || pending.size === 0 || inFlight >= MAX_BATCHES_IN_FLIGHT) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      const batch = nextBatch();
      if (batch.length > 0) send(batch);
      schedule();
    });
  }

  /** Removes the next batch from the pending requests, and rejects requests past their deadlines. */
  function nextBatch(): Pending[][] {
    const batch: Pending[][] = [];
    for (const [key, equal] of pending) {
      if (batch.length === MAX_BATCH_SIZE) break;
      pending.delete(key);
      for (const { deadline, reject } of equal) if (deadline.aborted) reject(deadline.reason);
      const inTime = equal.filter(({ deadline }) => !deadline.aborted);
      if (inTime.length > 0) batch.push(inTime);
    }
    return batch;
  }

  async function send(batch: readonly Pending[][]): Promise<void> {
    inFlight += 1;
    try {
      const results = await perform(batch.flatMap(([first]) => (first ? [first.request] : [])));
      assert(results.length === batch.length, 'result_per_item');
      for (const [index, equal] of batch.entries()) for (const { resolve } of equal) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of batch.flat()) reject(error);
    }
    inFlight -= 1;
    schedule();
  }

  return {
    submit: (request, deadline) =>
      new Promise((resolve, reject) => {
        const key = toKey(request);
        const equal = pending.get(key) ?? [];
        if (equal.length === 0) pending.set(key, equal);
        equal.push({ request, deadline, resolve, reject });
        schedule();
      }),
  };
}

/** A read of a studio's record, and of members and sources by their paths. */
interface StudioRead {
  readonly studioId: string;
  readonly paths?: readonly string[];
}

/** Combined reads of studios. A studio's document may be large, so only the requested parts are read. */
export type StudioReads = Batched<StudioRead, StudioDocument | null>;

/** Each read returns a document with at least the requested parts. */
export function studioReads({ studios }: Collections): StudioReads {
  return requestBatcher(async (reads) => {
    const paths = reads.flatMap((read) => read.paths ?? []);
    const projection = { ...STUDIO_FIELDS, ...Object.fromEntries(paths.map((path) => [path, 1])) };
    const studioIds = [...new Set(reads.map(({ studioId }) => studioId))];
    const found = await studios.find({ _id: { $in: studioIds } }, { ...READ, projection }).toArray();
    const byId = new Map(found.map((studio) => [studio._id, studio]));
    return reads.map(({ studioId }) => byId.get(studioId) ?? null);
  });
}
