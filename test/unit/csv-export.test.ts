import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CSV_HEADER, disarm, formatLeads, restore } from '../../operator/csv-export.ts';
import { readTexts, TEXT_FIELDS } from '../../src/domain/lead-data.ts';
import { newId } from '../../src/domain/new-id.ts';
import { aLead, HARD_TEXTS, NOW, plus } from '../support/builders.ts';

/** The starts of a formula in spreadsheets: `=`, `+`, `-`, `@` in both widths, and white space, which they skip. */
const FORMULA_STARTS = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/** Texts, many of which start like a formula. */
const someText = fc
  .tuple(fc.array(fc.constantFrom("'", ...FORMULA_STARTS), { maxLength: 3 }), fc.string({ unit: 'binary' }))
  .map(([start, rest]) => start.join('') + rest);

// @proves leads-15
describe('a cell of CSV', () => {
  test.each([
    ['+49 30 1234567', "'+49 30 1234567"],
    ["'=1+1", "''=1+1"],
    ["'90s", "'90s"],
    ['1-2=3', '1-2=3'],
  ])('the text %j is written as the CSV cell %j', (text, cell) => {
    expect(disarm(text)).toBe(cell);
    expect(restore(cell)).toBe(text);
  });

  test('a CSV cell never starts like a formula, and can be restored exactly', () => {
    fc.assert(
      fc.property(someText, (text) => {
        const cell = disarm(text);
        expect(FORMULA_STARTS).not.toContain(cell[0]);
        expect(restore(cell)).toBe(text);
      }),
    );
  });
});

// @proves leads-15
test('another reader of RFC 4180 reads every text unchanged', () => {
  const texts = [...Object.values(HARD_TEXTS), '=1+1', "'=1", 'a,b;c', '"', '\r', '\n', 'x\ny', ' '];
  const leads = texts.map((text, index) =>
    aLead({
      studioId: index % 2 ? 's1' : '-s2',
      ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, text])),
      note: index % 3 ? text : null,
      contact: index % 2 ? { type: 'phone', value: '+49 30 123' } : { type: 'email', value: '=a@example.org' },
      sourceId: index % 2 ? null : aLead().id,
      stage: 'trial_booked',
      createdAt: NOW,
      updatedAt: plus(NOW, 1),
      ...(index % 2 && { apiKeyId: newId() }),
      ...(index % 2 && { enquiries: [{ id: newId(), time: NOW, ...readTexts({ displayName: text, note: text }) }] }),
    }),
  );

  const records: Record<string, string>[] = parse(CSV_HEADER + formatLeads(leads), { columns: true });

  const read = records.map((record) =>
    Object.fromEntries(Object.entries(record).map(([name, cell]) => [name, restore(cell)])),
  );
  expect(read).toEqual(
    leads.map(({ id, studioId, contact, enquiries, apiKeyId, ...lead }) => ({
      id,
      studioId,
      ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, lead[field] ?? ''])),
      email: contact.type === 'email' ? contact.value : '',
      phone: contact.type === 'phone' ? contact.value : '',
      stage: 'trial_booked',
      createTime: '2026-03-14T15:09:26.535Z',
      updateTime: '2026-03-14T15:09:26.536Z',
      enquiries: enquiries ? JSON.stringify(enquiries) : '',
      apiKeyId: apiKeyId ?? '',
    })),
  );
});
