import type { PlantedBug } from './planted-bug.ts';

const OUTBOX = 'test/outbox/outbox.test.ts';
const ROWS = 'sdk/outbox/lead-rows.ts';
const DELIVERY = 'sdk/outbox/delivery.ts';

/** Faults of the outbox for Node, whose driver is a separate process. */
export const OUTBOX_BUGS: readonly PlantedBug[] = [
  {
    name: 'a worker takes a lead whose lease another worker holds',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: two workers share the work',
    patches: [
      {
        file: ROWS,
        find: 'if (changes !== 1) return undefined;',
        put: `if (changes !== 1) {
                await run(\`UPDATE \${table} SET attempts = attempts + 1 WHERE idempotency_key = ?\`, key);
              }`,
      },
    ],
    inSoak: true,
  },
  {
    name: 'each attempt to send a lead has a new idempotency key',
    suite: OUTBOX,
    caughtBy:
      'Node on SQLite: a worker killed after the service has responded and before it receives the response creates no second lead',
    patches: [
      {
        file: DELIVERY,
        find: 'client.createLead(capture, { idempotencyKey: key })',
        put: 'client.createLead(capture)',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a client finds no fault in a note that is too long',
    suite: 'test/e2e/sdk-faults.test.ts',
    caughtBy: 'TypeScript: a lead has the faults that the service finds in it, and no others',
    patches: [{ file: 'sdk/faults.ts', find: "check('note', note)", put: 'void note' }],
  },
  {
    name: 'the error of a mistyped key repeats it',
    suite: 'test/e2e/sdk-secrets.test.ts',
    caughtBy: 'in TypeScript, no error and no inspection shows the key or the visitor',
    patches: [
      {
        file: 'sdk/configuration.ts',
        find: "'apiKey must be the whole secret of an API key, lik_ and 48 characters, without a mistake'",
        put: '`no key: `.concat(apiKey)',
      },
    ],
  },
];
