import type { PlantedBug } from './planted-bug.ts';

const PHONE_NUMBER = 'src/domain/phone-number.ts';
const suite = 'test/unit/contact-keys.test.ts';
const SEPARATED = 'in regions with D, with and without a country code, whatever separates the digits';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const STALE = 'a move of a lead that has changed since the expected time is stale and writes nothing';
const LEFT_OUT = 'has its leads in no consumer that has not asked, named or not, and what waited before waits on';

/** Faults of leads: their contacts, enquiries, corrections and studios. */
export const LEAD_BUGS: readonly PlantedBug[] = [
  {
    name: 'a phone number is compared by E.164 only',
    suite,
    caughtBy: SEPARATED,
    patches: [
      { file: PHONE_NUMBER, find: '(dialled.spelled ?? dialled.digits) + suffix', put: 'dialled.spelled ?? typed' },
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
  {
    name: 'an enquiry changes the lead',
    suite: 'test/e2e/http/one-open-lead.test.ts',
    caughtBy: 'keeps what is refused for the CRM, which no response shows; a studio that switches it off answers alike',
    isSeenOutside: true,
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        text: 'SET original = :original, ',
        put: 'SET original = :original, updated_at = updated_at + 1, ',
      },
    ],
  },
  {
    name: 'a move overwrites what a colleague has changed since the expected time',
    suite: ON_SQLITE,
    caughtBy: STALE,
    patches: [
      {
        file: 'src/store/decisions/leads.ts',
        find: 'Boolean(expected && expected.getTime() !== updatedAt.getTime())',
        put: 'false',
      },
    ],
  },
  {
    name: 'leads of test studios come to every consumer',
    suite: ON_SQLITE,
    caughtBy: LEFT_OUT,
    patches: [{ file: 'src/domain/consumer.ts', find: '(includesTests || !isTest)', put: 'true' }],
  },
  {
    name: 'an export of a person lacks the leads that had the contact before a correction',
    suite: 'test/integration/export-contact.test.ts',
    caughtBy: 'sends every lead of a person with all that is kept of it, and at the end whether that is all',
    patches: [
      {
        file: 'src/usecases/export-contact.ts',
        find: "findContactLeads(store, studioId, contact as Contact, 'former')",
        put: 'findContactLeads(store, studioId, contact as Contact)',
      },
    ],
  },
];
