import type { ClientSession, Collection } from 'mongodb';
import { expect, test, vi } from 'vitest';
import { boundedCollection, type Perform } from '../../src/store/mongo/collections.ts';
import { expectNoTimerLeft } from '../support/own-timers.ts';

/** The timeout of a command; milliseconds. No other timer of the process has this delay. */
const MAX_MS = 4001;

expectNoTimerLeft(MAX_MS);

/** A collection of a driver whose commands never end. */
const silent = {
  findOne: () => new Promise(() => {}),
  insertMany: () => new Promise(() => {}),
  find: () => ({ toArray: () => new Promise(() => {}) }),
} as unknown as Collection;

const session = {} as ClientSession;
const perform: Perform = (_, command) => command(session);

// @proves mongodb-2
test.each<[string, (collection: Collection) => Promise<unknown>]>([
  ['find', (collection) => collection.findOne({})],
  ['find', (collection) => collection.find({}).toArray()],
  ['insert', (collection) => collection.insertMany([{}, {}])],
])('a %s that the driver never finishes fails in time and is reported as failed', async (command, work) => {
  const reported: unknown[] = [];
  const collection = boundedCollection(silent, MAX_MS, perform, ({ name }) => {
    reported.push(name);
    return (ok) => reported.push(ok);
  });
  const outcome = expect(work(collection)).rejects.toThrow(`within ${MAX_MS} ms`);

  vi.advanceTimersByTime(MAX_MS - 1);
  expect(reported).toEqual([command]);
  vi.advanceTimersByTime(1);

  await outcome;
  expect(reported).toEqual([command, false]);
});

test('a finished command leaves no timer, even without an observer', async () => {
  const answering = { findOne: async () => ({ answer: 42 }) } as unknown as Collection;
  expect(await boundedCollection(answering, MAX_MS, perform, undefined).findOne({})).toEqual({ answer: 42 });
});
