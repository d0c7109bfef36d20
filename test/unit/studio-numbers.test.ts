import type { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/store/sqlite/open-database.ts';
import { studioNumbers } from '../../src/store/sqlite/rows.ts';
import { times } from '../support/builders.ts';

let database: DatabaseSync;
let studios: ReturnType<typeof studioNumbers>;
beforeEach(() => {
  ({ database } = openDatabase(':memory:'));
  onTestFinished(() => database.close());
  studios = studioNumbers(database);
});

describe('the number of a studio', () => {
  test('is unique and permanent', () => {
    expect(studios.of('one')).toBeUndefined();
    const [one, two] = [studios.assign('one'), studios.assign('two')];

    expect(one).not.toBe(two);
    for (const each of [studios, studioNumbers(database)]) {
      expect([each.of('one'), each.assign('two')]).toEqual([one, two]);
    }
  });

  test('is not cached when its transaction is rolled back: another studio may get it', () => {
    database.exec('BEGIN');
    const given = studios.assign('undone');
    expect(studios.inWrite('undone')).toBe(given);
    database.exec('ROLLBACK');

    expect(studios.assign('another')).toBe(given);
    expect(studios.of('undone')).toBeUndefined();
    expect(studios.assign('undone')).not.toBe(given);
  });

  // @proves bounds-23
  test('is the same for more studios than the fifty thousand that are cached', () => {
    database.exec('BEGIN');
    const given = times(50_001, (index) => studios.assign(`studio-${index}`));
    database.exec('COMMIT');

    for (const _ of times(2, () => 0)) {
      expect(given.map((_, index) => studios.of(`studio-${index}`))).toEqual(given);
    }
  });
});
