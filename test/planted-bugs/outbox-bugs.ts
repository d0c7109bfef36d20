import type { PlantedBug } from './planted-bug.ts';

/** Faults of the outbox for Node, whose driver is a separate process. */
export const OUTBOX_BUGS: readonly PlantedBug[] = [
  {
    name: 'the error of a mistyped key repeats it',
    suite: 'test/e2e/sdk-secrets.test.ts',
    caughtBy: 'in TypeScript, no error and no inspection shows the key or the visitor',
    patches: [
      {
        file: 'sdk/configuration.ts',
        find: 'faultOfKey(apiKey)',
        put: 'faultOfKey(apiKey)?.concat(apiKey)',
      },
    ],
  },
];
