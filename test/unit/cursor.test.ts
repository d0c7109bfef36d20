import { describe, expect, test } from 'vitest';
import { pageTokenFault } from '../../common/rules/field-rules.ts';
import { idBeforePage, pageTokenAfter } from '../../src/domain/cursor.ts';
import { newId } from '../../src/domain/new-id.ts';
import { STUDIO_ID } from '../support/builders.ts';

const ALPHABET = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'];

describe('page tokens', () => {
  test.each([newId(), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])(
    'a page token restores lead %s only for its own studio and list',
    (id) => {
      const token = pageTokenAfter('leads', STUDIO_ID, id);

      expect(pageTokenFault(token)).toBeUndefined();
      expect(idBeforePage('leads', STUDIO_ID, token)).toBe(id);
      expect(idBeforePage('sources', STUDIO_ID, token)).toBeUndefined();
      for (const studio of ['studio-2', 'Studio-1', 'studio-', 'studio-1\0', '']) {
        expect(idBeforePage('leads', studio, token)).toBeUndefined();
      }
    },
  );

  test('a page token of an earlier release still works', () => {
    const token = 'AQGJCl2slndLvM6zAgmagFfMPVspgOaR-MZLXrM1NBqm';

    expect(idBeforePage('leads', 'studio-1', token)).toBe('01890a5d-ac96-774b-bcce-b302099a8057');
  });

  test('any text that is not a page token is refused', () => {
    const token = pageTokenAfter('leads', STUDIO_ID, newId());
    const changed = [...token].flatMap((right, at) =>
      ALPHABET.filter((wrong) => wrong !== right).map((wrong) => token.slice(0, at) + wrong + token.slice(at + 1)),
    );
    const added = ['A', 'AAAA', token, '=', '\n', ' ', '\0', 'ä'].flatMap((text) => [
      token + text,
      text + token,
      token.slice(0, 20) + text + token.slice(20),
    ]);
    // A valid token in standard base64, whose alphabet differs from that of base64url.
    const inOtherBase64 = 'AQGJCl2slndLvM6zAgmagFfMPVspgOaR+MZLXrM1NBqm';

    for (const text of [...changed, ...added, inOtherBase64, '', 'A'.repeat(44), 'A'.repeat(512), '🦉']) {
      expect(idBeforePage('leads', 'studio-1', text), text).toBeUndefined();
    }
  });
});
