import type { PlantedBug } from './planted-bug.ts';

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
    name: 'an open lead of release 1.2 refuses another contact',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'with 030 1234567 #5 refuses its own contact, not 030 12345675, whose enquiry it does not keep',
    patches: [
      { file: 'src/store/decisions/leads.ts', find: 'const KEY_RULE_OF_1_2 = 2;', put: 'const KEY_RULE_OF_1_2 = 1;' },
    ],
  },
];
