import { expect, test } from 'vitest';
import { tableText } from '../../operator/table-text.ts';

const ID = '01a22d49-9914-74ca-9f49-2882aee1020e';

/** Returns the lines of a table in a terminal of 80 columns. */
const splitLines = (...records: Parameters<typeof tableText>[0]) => tableText(records, 80)?.split('\n');

test('a table has a heading for each field of any record, and times in seconds', () => {
  const lines = splitLines({ id: ID, keepEnquiries: 'true' }, { id: ID, createdAt: '2026-11-30T16:05:02.123Z' });
  expect(lines).toEqual([
    'id                                    keep enquiries  created at',
    '────────────────────────────────────────────────────────────────────────────',
    `${ID}  true`,
    `${ID}                  2026-11-30 16:05:02Z`,
    '',
  ]);
});

test('a table wraps its longest texts to fit 80 columns, and keeps ids whole', () => {
  const lines = splitLines({ id: ID, name: 'Ada King, Countess of Lovelace', contact: 'a'.repeat(70), stage: 'new' });
  expect(lines?.filter((line) => line.length > 80)).toEqual([]);
  expect(lines?.join('\n')).toContain(ID);
  expect(lines?.join('').match(/a{6,}/g)?.join('')).toBe('a'.repeat(70));
});

test('a table counts a wide character as two columns', () => {
  const [, , wide, narrow] = splitLines({ name: '李小龍', stage: 'new' }, { name: 'Ada', stage: 'won' }) ?? [];
  expect([wide, narrow]).toEqual(['李小龍  new', 'Ada     won']);
});

test('there is no table if ids alone take more than 80 columns', () => {
  expect(splitLines({ id: ID, leadId: ID, name: 'Ada' })).toBeUndefined();
});
