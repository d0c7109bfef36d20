import type { PlantedBug } from './planted-bug.ts';

const PHONE_NUMBER = 'src/domain/phone-number.ts';
const suite = 'test/unit/contact-keys.test.ts';
const SEPARATED = 'numbers of regions with D match with or without a country code, whatever separates digits';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const STALE = 'a move that expects an outdated updatedAt is stale and writes nothing';
const LEFT_OUT = 'leads of a test studio reach only consumers that asked for them';

/** Faults of leads: their contacts, enquiries, corrections and studios. */
export const LEAD_BUGS: readonly PlantedBug[] = [
  {
    name: 'phone numbers are compared only in their E.164 form',
    suite,
    caughtBy: SEPARATED,
    patches: [
      { file: PHONE_NUMBER, find: '(dialled.spelled ?? dialled.digits) + suffix', put: 'dialled.spelled ?? typed' },
    ],
  },
  {
    name: 'an open lead of release 1.2 refuses another contact',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'a 1.2 lead with 030 1234567 #5 blocks that contact but not 030 12345675',
    patches: [
      { file: 'src/store/decisions/leads.ts', find: 'const KEY_RULE_OF_1_2 = 2;', put: 'const KEY_RULE_OF_1_2 = 1;' },
    ],
  },
  {
    name: 'an enquiry changes the lead',
    suite: 'test/e2e/http/one-open-lead.test.ts',
    caughtBy: 'an enquiry is stored for the CRM unless the studio opts out, with the same response',
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
    name: 'a move overwrites a change made since the expected time',
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
    name: 'leads of test studios reach every consumer',
    suite: ON_SQLITE,
    caughtBy: LEFT_OUT,
    patches: [{ file: 'src/domain/consumer.ts', find: '(consumer.includesTests || !studio.isTest)', put: 'true' }],
  },
  {
    name: 'an export of a person lacks leads that had the contact before a correction',
    suite: 'test/integration/export-contact.test.ts',
    caughtBy: 'ExportContact sends every lead of a person with all its data, and whether that is all',
    patches: [
      {
        file: 'src/usecases/export-contact.ts',
        find: "findContactLeads(store, studioId, contact as Contact, 'former')",
        put: 'findContactLeads(store, studioId, contact as Contact)',
      },
    ],
  },
];
