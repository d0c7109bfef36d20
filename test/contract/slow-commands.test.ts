import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { reportSlowStatements } from '../../src/store/sqlite/slow-statements.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { openedStore } from '../support/patience.ts';
import { Canaries } from '../tools/canaries.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { arrange, key, lead, READS, source, WRITES } from './every-call.ts';

/** Makes every call of the port, and returns the shapes of all commands. */
async function shapesAt(databaseUrl: string): Promise<Set<string>> {
  const shapes = new Set<string>();
  const report = (shape: string) => void shapes.add(shape);
  const store = await openedStore(databaseUrl, { slow: { fromMs: 0, report } });
  onTestFinished(() => store.close());
  await arrange(store);
  for (const { call } of [...READS, ...WRITES]) await call(store).catch(() => {});
  return shapes;
}

function expectNoData(shapes: Set<string>): void {
  const canaries = new Canaries();
  for (const record of [lead, lead.contact, key, source]) {
    for (const [name, value] of Object.entries(record)) if (`${value}`.length > 5) canaries.add(name, `${value}`);
  }
  for (const shape of shapes) expect(canaries.in(shape), shape).toEqual([]);
}

// @proves secrets-5
test('the log of a slow SQLite command has no value of a caller', async () => {
  const shapes = await shapesAt(`sqlite:${join(temporaryFolder(), 'leads.db')}`);
  expect(shapes.size).toBeGreaterThan(50);
  expect([...shapes]).toContain('COMMIT');
  expectNoData(shapes);
});

// @proves secrets-5
describeWithMongo('on MongoDB', (url) => {
  test('the log of a slow MongoDB command has no value of a caller', async () => {
    const shapes = await shapesAt(url());
    expect([...shapes]).toEqual(
      expect.arrayContaining(['leads.insertMany {}', 'apiKeys.findOne {studioId: ?,_id: ?}']),
    );
    expectNoData(shapes);
  });
});

/** The methods of a prepared statement that run it. */
const RUNNING = Object.getOwnPropertyNames(StatementSync.prototype).filter(
  (name) => !/^(?:constructor|columns|close|stat|resetStats|set\w+)$/.test(name),
);

test.each(RUNNING)('reports only slow commands, with their duration: %s', (method) => {
  const database = new DatabaseSync(':memory:');
  onTestFinished(() => database.close());
  const reported: [string, number][] = [];
  reportSlowStatements(database, { fromMs: 50, report: (...each) => reported.push(each) });
  database.function('linger', (milliseconds) => {
    for (const end = performance.now() + Number(milliseconds); performance.now() < end; );
    return milliseconds;
  });
  const select = database.prepare('SELECT  linger(?)\n AS ms');

  for (const milliseconds of [0, 60]) {
    const rows = select[method as 'iterate'](milliseconds);
    // Some methods return a row or the result of a run, which cannot be iterated.
    if (Symbol.iterator in Object(rows)) expect([...rows]).toHaveLength(1);
  }

  const slow = reported.filter(([, durationMs]) => durationMs >= 60);
  expect(slow.map(([shape]) => shape)).toEqual(['SELECT linger(?) AS ms']);
});
