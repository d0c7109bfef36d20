import { MongoServerError } from 'mongodb';

/** Whether a unique index refused a write. Engines word the error differently: which index is unknown. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 11000;
}
