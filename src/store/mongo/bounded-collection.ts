import {
  type ClientSession,
  type Collection,
  type CommandOperationOptions,
  type Document,
  type Filter,
  type FindOptions,
  ReadConcern,
  type ReadConcernLevel,
  type Sort,
} from 'mongodb';
import type { StoreCommand } from '../store.ts';
import { isDuplicate } from './is-duplicate.ts';

/** The command of each method that the adapter uses, and the place of its options. */
const COMMANDS: Readonly<Record<string, readonly [name: StoreCommand['name'], optionsAt: number]>> = {
  findOne: ['find', 1],
  insertOne: ['insert', 1],
  insertMany: ['insert', 1],
  updateOne: ['update', 2],
  updateMany: ['update', 2],
  bulkWrite: ['update', 1],
  countDocuments: ['find', 1],
  findOneAndUpdate: ['update', 2],
};

/** Called when a command starts; the returned function is called when it ends, with whether it succeeded. */
export type CommandStarted = (name: StoreCommand['name'], size: number) => (isDone: boolean) => void;

/** Performs a command in a session of its own. */
export type Perform = <Result>(
  name: StoreCommand['name'],
  command: (session: ClientSession) => Promise<Result>,
) => Promise<Result>;

/**
 * A collection whose commands are bounded in time, causally consistent and observed. The driver's own command
 * monitoring would parse every response a second time.
 *
 * @param timeoutMs timeout of a command, including the wait for a connection and the driver's retry. The driver bounds
 *   each step, but a command that it sends at the very moment its connection is lost never ends, and everything behind
 *   it would wait for ever.
 */
export function boundedCollection<Schema extends Document>(
  collection: Collection<Schema>,
  timeoutMs: number,
  perform: Perform,
  onStart: CommandStarted | undefined,
): Collection<Schema> {
  const optionsOf = (session: ClientSession): CommandOperationOptions => ({
    session,
    // The driver adds the session's time to the object that it is given, so each command gets one of its own.
    readConcern: new ReadConcern((collection.readConcern?.level ?? 'majority') as ReadConcernLevel),
  });
  const observe = async <Result>(
    name: StoreCommand['name'],
    size: number,
    command: (options: CommandOperationOptions) => Promise<Result>,
  ): Promise<Result> => {
    const finish = onStart?.(name, size);
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`the driver did not end a command within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const result = await Promise.race([perform(name, (session) => command(optionsOf(session))), timeout]);
      finish?.(true);
      return result;
    } catch (error) {
      // A refusal by a unique index is an expected result.
      finish?.(isDuplicate(error));
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  return new Proxy(collection, {
    get(target, name) {
      const method = Reflect.get(target, name) as unknown;
      if (typeof method !== 'function') return method;
      const known = COMMANDS[String(name)];
      if (known) {
        const [command, optionsAt] = known;
        return (...args: unknown[]) => {
          const size = name === 'insertMany' ? (args[0] as unknown[]).length : 1;
          return observe(command, size, (options) =>
            method.apply(target, args.toSpliced(optionsAt, 1, { ...(args[optionsAt] as object), ...options })),
          );
        };
      }
      if (name !== 'find') return method.bind(target);
      // The driver's cursor takes its session when it is made, so it is made when it is read.
      return (filter: Filter<Schema>, findOptions: FindOptions) => {
        const cursor = (options: FindOptions) => ({
          sort: (sort: Sort) => cursor({ ...options, sort }),
          limit: (limit: number) => cursor({ ...options, limit }),
          toArray: () => observe('find', 1, (own) => target.find(filter, { ...options, ...own }).toArray()),
        });
        return cursor(findOptions);
      };
    },
  });
}
