import { MongoServerError } from 'mongodb';

/** The error that a unique index answers. Which index it was is not to be had: engines word it differently. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 11000;
}
