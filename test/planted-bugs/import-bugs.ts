import type { PlantedBug } from './planted-bug.ts';

const BY_RPC = 'test/integration/import-leads.test.ts';
const CLOSED = 'claims no contact, blocks no other lead, and finds the lead by contact and key';

/** Faults of imports. */
export const IMPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'an imported closed lead blocks its contact',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: CLOSED,
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        find: 'claimed.take(studio, contactKeys, { number, isOpen: isOpen(lead.stage) });',
        put: 'claimed.take(studio, contactKeys, { number, isOpen: true });',
      },
      {
        file: 'src/store/sqlite/leads.ts',
        find: 'isOpen(lead.stage) ? claimed.holderOf(studio, contactKeys) : undefined',
        put: 'claimed.holderOf(studio, contactKeys)',
      },
    ],
  },
  {
    name: 'an imported lead is listed by the time of its import',
    suite: BY_RPC,
    caughtBy: 'writes leads with their stages and times, listed by creation time',
    patches: [{ file: 'src/usecases/import-leads.ts', find: 'newIdAt(lead.createdAt)', put: 'newIdAt(now)' }],
  },
  {
    name: 'a refused lead is reported as imported',
    suite: BY_RPC,
    caughtBy: 'refuses each lead separately',
    patches: [
      {
        file: 'src/usecases/import-leads.ts',
        find: 'if (error instanceof Refusal) return { refusal: error };',
        put: 'if (error instanceof Refusal) return { leadId: studio.id, replayed: true };',
      },
    ],
    inSoak: true,
  },
];

/** The same on MongoDB. */
export const MONGO_IMPORT_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, an imported closed lead is not found by its contact',
    suite: 'test/contract/mongo-store.test.ts',
    caughtBy: CLOSED,
    patches: [
      {
        file: 'src/store/mongo/documents.ts',
        find: 'isOpen(lead.stage) ? claimsDocument(claims) : closedClaimsDocument(id, claims)',
        put: 'isOpen(lead.stage) ? claimsDocument(claims) : { openContactKey: erasedClaim(id) }',
      },
    ],
  },
];
