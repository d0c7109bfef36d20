import { MongoServerError } from 'mongodb';

/** Whether a unique index refused a write. Engines word the error differently, so it does not tell which index. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 11000;
}
