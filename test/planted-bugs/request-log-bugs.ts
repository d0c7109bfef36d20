import type { PlantedBug } from './planted-bug.ts';

/** Faults of the log of requests. */
export const REQUEST_LOG_BUGS: readonly PlantedBug[] = [
  {
    name: 'what a caller takes for the id of a lead is recorded',
    suite: 'test/integration/request-log.test.ts',
    caughtBy: 'has each answered request of a key by the names of the contract, and nothing that its sender typed',
    patches: [
      {
        file: 'gateway/core/request-log.ts',
        find: 'isOfLead && leadId !== undefined',
        put: 'leadId !== undefined',
      },
    ],
  },
  {
    name: 'a request names its lead also once that is erased',
    inSoak: true,
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy:
      'names no lead that was erased or never was, whenever the request was recorded, and nothing of a studio without leads',
    patches: [
      {
        file: 'src/usecases/request-log.ts',
        find: "(await store.presenceOfLead(studioId, leadId)) === 'present'",
        put: 'true',
      },
    ],
  },
  {
    name: 'a batch that is sent again is another one',
    inSoak: true,
    suite: 'test/unit/request-log.test.ts',
    caughtBy: 'is sent again, as it is, while the outcome is unknown, and holds up to as much as it holds without',
    patches: [
      {
        file: 'gateway/core/request-log.ts',
        find: 'this.#core.recordRequests(this.#unsent)',
        put: 'this.#core.recordRequests({ ...this.#unsent, batchId: randomUUID() })',
      },
    ],
  },
];
