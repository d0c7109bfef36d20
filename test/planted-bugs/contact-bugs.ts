import type { PlantedBug } from './planted-bug.ts';

const NUMBER = 'src/domain/dialled-number.ts';
const KEYS = 'src/domain/contact-keys.ts';
const suite = 'test/unit/contact-keys.test.ts';
const SEPARATED = 'in regions with D, with and without a country code, whatever separates the digits';

/** Faults in the comparison of contacts. */
export const CONTACT_BUGS: readonly PlantedBug[] = [
  {
    name: 'a phone number is compared by E.164 only',
    suite,
    caughtBy: 'without a region, examples of regions with D, whatever separates the digits',
    patches: [
      { file: KEYS, find: '(dialled.spelled ?? dialled.digits) + suffixOf(dialled)', put: 'dialled.spelled ?? typed' },
    ],
  },
  {
    name: 'a phone number is compared by its digits only',
    suite,
    caughtBy: SEPARATED,
    patches: [
      {
        file: KEYS,
        find: 'const e164 = e164Of(dialled, region);',
        put: 'const e164 = undefined as string | undefined;',
      },
    ],
  },
  {
    name: 'dashes of Japanese keyboards are letters',
    suite,
    caughtBy: 'like 045-222-3344, 045ー222ー3344 in JP',
    patches: [{ file: NUMBER, find: 'const DASHES_OF_CJK = $PATTERN;', put: 'const DASHES_OF_CJK = /(?!)/u;' }],
  },
  {
    name: 'format characters separate letters of an email address',
    suite,
    caughtBy: 'like ada@example.org, ada@exam\u00adple.org in no region',
    patches: [
      { file: KEYS, find: "address.replace(/[\\p{Cf}\\p{Default_Ignorable_Code_Point}]/gu, '')", put: 'address' },
    ],
  },
  {
    name: 'domains are compared as they were typed',
    suite,
    caughtBy: 'like ada@bücher.example, ada@xn--bcher-kva.example in no region',
    patches: [{ file: KEYS, find: 'ascii || $TYPED', put: '$TYPED' }],
  },
  {
    name: 'email addresses are compared in upper case',
    suite,
    caughtBy: 'like i@example.org, İ@example.org in no region',
    patches: [
      {
        file: 'src/domain/comparable-text.ts',
        find: 'String.fromCodePoint(character.toLowerCase().codePointAt(0) as number)',
        put: 'character.toUpperCase().toLowerCase()',
      },
    ],
  },
  {
    name: 'an extension does not count',
    suite,
    caughtBy: 'like 030 4455667, 030 4455667 x5 in DE',
    patches: [{ file: NUMBER, find: 'extension: extension || labelled', put: "extension: ''" }],
  },
  {
    name: 'letters never spell a part of a number',
    suite,
    caughtBy: 'like 1-800-FLOWERS, 1-800-CONTACTS in US',
    patches: [{ file: NUMBER, find: 'if (!hasLetters) return NOT_SPELLED;', put: 'return NOT_SPELLED;' }],
  },
  {
    name: 'a remark is a part of the number',
    suite,
    caughtBy: 'like 03016067501, 03016067501 office in no region',
    patches: [{ file: NUMBER, find: 'if (!isSpelledForSure && $IS_LONG) return NOT_SPELLED;', put: '' }],
  },
  {
    name: 'open leads of release 1.1 are not met',
    suite,
    caughtBy: 'include those of release 1.1',
    patches: [
      { file: KEYS, find: '[...forms.map($FORM), ...hashedTextsOf11(contact, region)]', put: '[...forms.map($FORM)]' },
    ],
  },
];
