import type { PlantedBug } from './planted-bug.ts';

/** Faults of enquiries. */
export const ENQUIRY_BUGS: readonly PlantedBug[] = [
  {
    name: 'an enquiry whose key is repeated is kept again',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'an idempotency key is kept once, whatever it says and however often it is repeated',
    patches: [{ file: 'src/domain/enquiry.ts', find: 'isKeyKept({ keys }, idempotencyKey)', put: 'false' }],
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
];
