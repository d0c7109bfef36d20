import type { Collection, Document } from 'mongodb';
import type { StoreCommand, StoreObserver } from '../store.ts';
import { isDuplicate } from './is-duplicate.ts';

/** What each method of a collection that the adapter uses does. */
const COMMANDS: Readonly<Record<string, StoreCommand>> = {
  findOne: 'find',
  insertOne: 'insert',
  insertMany: 'insert',
  updateOne: 'update',
  findOneAndUpdate: 'update',
};

/**
 * A collection whose commands are told. The driver's own monitoring would tell them too, but reads every answer a second
 * time for it.
 */
export function observed<Schema extends Document>(
  collection: Collection<Schema>,
  observe: StoreObserver | undefined,
): Collection<Schema> {
  if (!observe) return collection;
  const tell = async <Result>(command: StoreCommand, size: number, work: () => Promise<Result>): Promise<Result> => {
    const finish = observe(command, size);
    try {
      const result = await work();
      finish(true);
      return result;
    } catch (error) {
      // Refused by an index: what it was sent for, it did.
      finish(isDuplicate(error));
      throw error;
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
          return tell(command, size, () => method.apply(target, args));
        };
      }
      if (name !== 'find') return method.bind(target);
      return (...args: unknown[]) => {
        const cursor = method.apply(target, args);
        const toArray = cursor.toArray.bind(cursor);
        cursor.toArray = () => tell('find', 1, toArray);
        return cursor;
      };
    },
  });
}
