import { describe, expect, test } from 'vitest';
import { computeFingerprint, sameData } from '../../src/domain/fingerprint.ts';
import { type LeadData, readTexts, TEXT_FIELDS } from '../../src/domain/lead-data.ts';

const capture: LeadData = {
  ...readTexts({ displayName: 'Ada', sourceId: '01890a5d-ac96-774b-bcce-b302099a8057', note: 'Hello' }),
  contact: { type: 'email', value: 'ada@example.org' },
};

describe('fingerprints', () => {
  test('fingerprints of equal data are equal, whatever the order of its properties', () => {
    const { displayName, contact, ...others } = capture;
    const reordered = { ...others, contact: { value: contact.value, type: contact.type }, displayName };

    expect(computeFingerprint(reordered)).toEqual(computeFingerprint(capture));
    expect(sameData(computeFingerprint(reordered), computeFingerprint(capture))).toBe(true);
  });

  test.each<[what: string, change: Partial<LeadData>]>([
    ...TEXT_FIELDS.map((field): [string, Partial<LeadData>] => [field, { [field]: 'another text' }]),
    ['a blank', { displayName: 'Ada ' }],
    ['the type of the contact', { contact: { type: 'phone', value: 'ada@example.org' } }],
    ['a note that says null', { note: 'null' }],
    ['the end of one field', { displayName: 'Ada","email"', contact: { type: 'email', value: '"ada@example.org' } }],
    ['the field that has a text', { sourceId: null, note: '01890a5d-ac96-774b-bcce-b302099a8057' }],
  ])('fingerprints differ when %s differs', (_, change) => {
    expect(sameData(computeFingerprint({ ...capture, ...change }), computeFingerprint(capture))).toBe(false);
  });

  test('composed and decomposed text are different data', () => {
    const [composed, decomposed] = ['\u00e9', 'e\u0301'].map((note) => computeFingerprint({ ...capture, note }));
    expect(composed && decomposed && sameData(composed, decomposed)).toBe(false);
  });

  test('fingerprints of different versions are never equal', () => {
    const fingerprint = computeFingerprint(capture);

    expect(sameData(fingerprint, { ...fingerprint, version: fingerprint.version + 1 })).toBe(false);
  });

  test('fingerprints of version 1 never change, because they identify retries', () => {
    expect(computeFingerprint(capture)).toEqual({ version: 1, sha256: '78Xe3ptzlgZulXqJ8EonTnngcZnSZzIVHHGwcvNDlII' });
    expect(computeFingerprint({ ...capture, sourceId: null, note: null })).toEqual({
      version: 1,
      sha256: 'TG3dSYgOYqXdh_wMbTrJ-W5PgjxmODXx93qMr8_fONc',
    });
  });
});
