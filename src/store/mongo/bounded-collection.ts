import type { Collection, Document } from 'mongodb';
import type { StoreCommand } from '../store.ts';
import { isDuplicate } from './is-duplicate.ts';

/** What each method of a collection that the adapter uses does. */
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

/** Is told that a command begins, and by what it gives then, whether it was done. */
export type CommandStarted = (name: StoreCommand['name'], size: number) => (isDone: boolean) => void;

/**
 * A collection whose commands all end, and are told. The driver's own monitoring would tell them too, but reads every answer
 * a second time for it.
 *
 * @param mostMs how long a command may take, its wait for a connection and its repetition by the driver included. The driver
 *   has bounds of its own for each step, but what it sends over a connection at the very moment at which that is lost never
 *   ends; and whoever waited for that would wait for ever, with everybody who waits for their turn behind them.
 */
export function boundedCollection<Schema extends Document>(
  collection: Collection<Schema>,
  mostMs: number,
  begins: CommandStarted | undefined,
): Collection<Schema> {
  const attend = async <Result>(
    name: StoreCommand['name'],
    size: number,
    work: () => Promise<Result>,
  ): Promise<Result> => {
    const finish = begins?.(name, size);
    const { promise: givenUp, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error(`the driver did not end a command within ${mostMs} ms`)), mostMs);
    try {
      const result = await Promise.race([work(), givenUp]);
      finish?.(true);
      return result;
    } catch (error) {
      // Refused by an index: what it was sent for, it did.
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
          return attend(command, size, () => method.apply(target, args));
        };
      }
      if (name !== 'find') return method.bind(target);
      return (...args: unknown[]) => {
        const cursor = method.apply(target, args);
        const toArray = cursor.toArray.bind(cursor);
        cursor.toArray = () => attend('find', 1, toArray);
        return cursor;
      };
    },
  });
}
