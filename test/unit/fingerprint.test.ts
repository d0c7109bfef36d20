import { describe, expect, test } from 'vitest';
import { fingerprintOf, type LeadData, sameData } from '../../src/domain/lead.ts';

const capture: LeadData = {
  displayName: 'Ada',
  contact: { type: 'email', value: 'ada@example.org' },
  sourceId: '01890a5d-ac96-774b-bcce-b302099a8057',
  note: 'Hello',
};

describe('fingerprints', () => {
  test('are equal for equal data, whatever the order of its properties', () => {
    const { displayName, contact, sourceId, note } = capture;
    const reordered = { note, sourceId, contact: { value: contact.value, type: contact.type }, displayName };

    expect(fingerprintOf(reordered)).toEqual(fingerprintOf(capture));
    expect(sameData(fingerprintOf(reordered), fingerprintOf(capture))).toBe(true);
  });

  test.each<[what: string, change: Partial<LeadData>]>([
    ['the name', { displayName: 'Eda' }],
    ['the letter case of the name', { displayName: 'ADA' }],
    ['a blank', { displayName: 'Ada ' }],
    ['the type of the contact', { contact: { type: 'phone', value: 'ada@example.org' } }],
    ['the value of the contact', { contact: { type: 'email', value: 'bda@example.org' } }],
    ['the spelling of the contact', { contact: { type: 'email', value: 'Ada@example.org' } }],
    ['the source', { sourceId: '01890a5d-ac96-774b-bcce-b302099a8058' }],
    ['no source', { sourceId: null }],
    ['the note', { note: 'Hallo' }],
    ['no note', { note: null }],
    ['a note that says null', { note: 'null' }],
  ])('differ when %s differs', (_, change) => {
    expect(sameData(fingerprintOf({ ...capture, ...change }), fingerprintOf(capture))).toBe(false);
  });

  test('composed and decomposed text are different data', () => {
    expect(
      sameData(fingerprintOf({ ...capture, note: '\u00e9' }), fingerprintOf({ ...capture, note: 'e\u0301' })),
    ).toBe(false);
  });

  test('text at the end of one field is distinguished from the start of the next', () => {
    const a = fingerprintOf({ ...capture, displayName: 'a","email","b', note: null });
    const b = fingerprintOf({
      ...capture,
      displayName: 'a',
      contact: { type: 'email', value: 'b","ada@example.org' },
      note: null,
    });

    expect(sameData(a, b)).toBe(false);
  });

  test('the same text as a note and as a source is distinguished', () => {
    const sourceId = '01890a5d-ac96-774b-bcce-b302099a8057';
    const a = fingerprintOf({ ...capture, sourceId, note: null });
    const b = fingerprintOf({ ...capture, sourceId: null, note: sourceId });

    expect(sameData(a, b)).toBe(false);
  });

  test('of different versions are never equal', () => {
    const fingerprint = fingerprintOf(capture);

    expect(sameData(fingerprint, { ...fingerprint, version: fingerprint.version + 1 })).toBe(false);
  });

  test('of version 1 never change, because retries are recognised by them as long as the lead exists', () => {
    expect(fingerprintOf(capture)).toEqual({ version: 1, sha256: '78Xe3ptzlgZulXqJ8EonTnngcZnSZzIVHHGwcvNDlII' });
    expect(fingerprintOf({ ...capture, sourceId: null, note: null })).toEqual({
      version: 1,
      sha256: 'TG3dSYgOYqXdh_wMbTrJ-W5PgjxmODXx93qMr8_fONc',
    });
  });
});
