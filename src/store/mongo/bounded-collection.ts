import type { Collection, Document } from 'mongodb';
import type { StoreCommand } from '../store.ts';
import { isDuplicate } from './is-duplicate.ts';

/** The command of each method that the adapter uses. */
const COMMANDS: Readonly<Record<string, StoreCommand['name']>> = {
  findOne: 'find',
  insertOne: 'insert',
  insertMany: 'insert',
  updateOne: 'update',
  updateMany: 'update',
  bulkWrite: 'update',
  countDocuments: 'find',
  findOneAndUpdate: 'update',
};

/** Called when a command starts; the returned function is called when it ends, with whether it succeeded. */
export type CommandStarted = (name: StoreCommand['name'], size: number) => (isDone: boolean) => void;

/**
 * A collection whose commands are bounded in time and observed. The driver's own command monitoring would parse every
 * response a second time.
 *
 * @param timeoutMs timeout of a command, including the wait for a connection and the driver's retry. The driver bounds
 *   each step, but a command that it sends at the very moment its connection is lost never ends, and everything behind
 *   it would wait for ever.
 */
export function boundedCollection<Schema extends Document>(
  collection: Collection<Schema>,
  timeoutMs: number,
  onStart: CommandStarted | undefined,
): Collection<Schema> {
  const observe = async <Result>(
    name: StoreCommand['name'],
    size: number,
    work: () => Promise<Result>,
  ): Promise<Result> => {
    const finish = onStart?.(name, size);
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`the driver did not end a command within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const result = await Promise.race([work(), timeout]);
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
      const command = COMMANDS[String(name)];
      if (command) {
        return (...args: unknown[]) => {
          const size = name === 'insertMany' ? (args[0] as unknown[]).length : 1;
          return observe(command, size, () => method.apply(target, args));
        };
      }
      if (name !== 'find') return method.bind(target);
      return (...args: unknown[]) => {
        const cursor = method.apply(target, args);
        const toArray = cursor.toArray.bind(cursor);
        cursor.toArray = () => observe('find', 1, toArray);
        return cursor;
      };
    },
  });
}
