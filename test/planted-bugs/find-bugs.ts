import type { PlantedBug } from './planted-bug.ts';

const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const ON_MONGODB = 'test/contract/mongo-store.test.ts';
const FOUND = 'are found, open and closed, and no others';

/** Faults of finding the leads of a contact on SQLite, and of what both stores share. */
export const FIND_BUGS: readonly PlantedBug[] = [
  {
    name: 'a closed lead is not found by its contact',
    suite: ON_SQLITE,
    caughtBy: FOUND,
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        find: 'claimed.take(studio, after, { number, isOpen: becomesOpen });',
        put: 'if (becomesOpen) claimed.take(studio, after, { number, isOpen: true });',
      },
    ],
  },
  {
    name: 'open leads are on every page of the leads of a contact',
    suite: 'test/integration/find-leads.test.ts',
    caughtBy: 'returns all leads in pages of 2',
    patches: [
      {
        file: 'src/usecases/find-leads.ts',
        find: 'before === null ? found.filter(({ stage }) => isOpen(stage)) : []',
        put: 'found.filter(({ stage }) => isOpen(stage))',
      },
    ],
    inSoak: true,
  },
];

/** The same on MongoDB. */
export const FIND_MONGO_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, a closed lead is not found by its contact',
    suite: ON_MONGODB,
    caughtBy: FOUND,
    patches: [
      {
        file: 'src/store/mongo/leads.ts',
        find: 'closedClaimsDocument(_id.id.toString(), { ...claims, contactKeys }, former)',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is one in the product
        put: '{ openContactKey: `closed:${_id.id}` }',
      },
    ],
  },
  {
    name: 'on MongoDB, a lead is closed with the claims of its former contact',
    suite: ON_MONGODB,
    caughtBy: 'cannot be closed with the claims of a former contact',
    patches: [
      {
        file: 'src/store/mongo/leads.ts',
        find: '!keepsClaims && !isSameContact(lead.contact, claims.contact)',
        put: 'isOpen(stage) && !keepsClaims && !isSameContact(lead.contact, claims.contact)',
      },
    ],
    inSoak: true,
  },
];
