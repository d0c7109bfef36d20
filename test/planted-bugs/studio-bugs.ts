import type { PlantedBug } from './planted-bug.ts';

const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const LEFT_OUT = 'has its leads in no consumer that has not asked, named or not, and what waited before waits on';

/** Faults of test studios. */
export const STUDIO_BUGS: readonly PlantedBug[] = [
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
        find: "leadsOf(store, studioId, contact as Contact, 'former')",
        put: 'leadsOf(store, studioId, contact as Contact)',
      },
    ],
  },
];
