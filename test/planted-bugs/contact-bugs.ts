import type { PlantedBug } from './planted-bug.ts';

const KEYS = 'src/domain/contact.ts';
const PHONE_NUMBER = 'src/domain/phone-number.ts';
const suite = 'test/unit/contact-keys.test.ts';
const SEPARATED = 'in regions with D, with and without a country code, whatever separates the digits';

/** Faults in the comparison of contacts. */
export const CONTACT_BUGS: readonly PlantedBug[] = [
  {
    name: 'a phone number is compared by E.164 only',
    suite,
    caughtBy: SEPARATED,
    patches: [
      { file: PHONE_NUMBER, find: '(dialled.spelled ?? dialled.digits) + suffix', put: 'dialled.spelled ?? typed' },
    ],
  },
  {
    name: 'a phone number is compared by its digits only',
    suite,
    caughtBy: SEPARATED,
    patches: [
      {
        file: PHONE_NUMBER,
        find: 'const e164 = e164Of(dialled, region);',
        put: 'const e164 = undefined as string | undefined;',
      },
    ],
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
