import { describe, expect, test } from 'vitest';
import { pageTokenFault } from '../../common/rules/field-rules.ts';
import { idBeforePage, pageTokenAfter } from '../../src/domain/cursor.ts';
import { newId } from '../../src/domain/new-id.ts';
import { STUDIO_ID, times } from '../support/builders.ts';

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

describe('page tokens', () => {
  test.each([...times(20, newId), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])(
    'lead %s is restored from its token',
    (id) => {
      const token = pageTokenAfter('leads', STUDIO_ID, id);

      expect(idBeforePage('leads', STUDIO_ID, token)).toBe(id);
      expect(pageTokenFault(token)).toBeUndefined();
    },
  );

  test('one made by an earlier release is still followed', () => {
    const token = 'AQGJCl2slndLvM6zAgmagFfMPVspgOaR-MZLXrM1NBqm';

    expect(idBeforePage('leads', 'studio-1', token)).toBe('01890a5d-ac96-774b-bcce-b302099a8057');
  });

  test('one with any single character changed is refused', () => {
    const token = pageTokenAfter('leads', STUDIO_ID, newId());
    const changed = [...token].flatMap((right, at) =>
      ALPHABET.filter((wrong) => wrong !== right).map((wrong) => token.slice(0, at) + wrong + token.slice(at + 1)),
    );

    expect(changed).toHaveLength(token.length * 63);
    expect(changed.filter((text) => idBeforePage('leads', STUDIO_ID, text) !== undefined)).toEqual([]);
  });

  test('one of another list of the studio is refused', () => {
    const token = pageTokenAfter('sources', STUDIO_ID, newId());

    expect(idBeforePage('leads', STUDIO_ID, token)).toBeUndefined();
    expect(idBeforePage('sources', STUDIO_ID, token)).toBeDefined();
  });

  test('one with anything added is refused', () => {
    const token = pageTokenAfter('leads', STUDIO_ID, newId());
    const added = ['A', 'AA', 'AAA', 'AAAA', token, '=', '==', '\n', ' ', '.', '\0', 'ä'];

    for (const text of added) {
      expect(idBeforePage('leads', STUDIO_ID, token + text)).toBeUndefined();
      expect(idBeforePage('leads', STUDIO_ID, text + token)).toBeUndefined();
      expect(idBeforePage('leads', STUDIO_ID, token.slice(0, 20) + text + token.slice(20))).toBeUndefined();
    }
  });

  test('one written in the other base64 alphabet is refused', () => {
    // A token in which the two alphabets differ.
    const token = times(1000, () => pageTokenAfter('leads', STUDIO_ID, newId())).find((text) =>
      /[-_]/.test(text),
    ) as string;
    const other = token.replaceAll('-', '+').replaceAll('_', '/');

    expect(Buffer.from(other, 'base64url')).toEqual(Buffer.from(token, 'base64url'));
    expect(idBeforePage('leads', STUDIO_ID, other)).toBeUndefined();
  });

  test('one of another studio is refused', () => {
    const token = pageTokenAfter('leads', STUDIO_ID, newId());

    for (const studio of ['studio-2', 'Studio-1', 'studio-', 'studio-1\0', '']) {
      expect(idBeforePage('leads', studio, token)).toBeUndefined();
    }
  });

  test('one of another version is refused', () => {
    const bytes = Buffer.from(pageTokenAfter('leads', STUDIO_ID, newId()), 'base64url');

    for (const version of [0, 2, 255]) {
      bytes[0] = version;
      expect(idBeforePage('leads', STUDIO_ID, bytes.toString('base64url'))).toBeUndefined();
    }
  });

  test.each(['', 'A'.repeat(44), '-'.repeat(44), 'A'.repeat(512), '🦉'])('%s is refused', (text) => {
    expect(idBeforePage('leads', STUDIO_ID, text)).toBeUndefined();
  });
});
