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
];
