import type { PlantedBug } from './planted-bug.ts';

const OUTBOX = 'test/outbox/outbox.test.ts';
const KILLS = 'test/outbox/kills.test.ts';
const ROWS = 'sdk/outbox/lead-rows.ts';
const DELIVERY = 'sdk/outbox/delivery.ts';

/** Faults of the outbox for Node, whose driver is a separate process. */
export const OUTBOX_BUGS: readonly PlantedBug[] = [
  {
    name: 'the lease of a killed worker lasts for hours',
    inSoak: true,
    suite: KILLS,
    caughtBy:
      'Node on SQLite: a worker killed after the service has responded and before it receives the response creates no second lead',
    patches: [{ file: ROWS, find: 'const LEASE_MS = 5 * MINUTE_MS;', put: 'const LEASE_MS = 20 * 60 * MINUTE_MS;' }],
  },
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
    suite: KILLS,
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
    name: 'the data is erased before the listener is called',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: erases data only after the listener has returned',
    patches: [
      {
        file: DELIVERY,
        find: 'return await notified(lead, outcome);',
        put: `await leads.note(lead, outcome);
              return await notified(lead, outcome);`,
      },
    ],
    inSoak: true,
  },
  {
    name: 'the note of a returning visitor is erased',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: keeps what a visitor wrote until somebody has got it',
    patches: [
      {
        file: 'sdk/outbox/outcome.ts',
        find: 'note === undefined || note === null ? null : REASON_NOT_TAKEN',
        put: 'null',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an invalid API key is tried again for each lead',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: an invalid key or an unavailable service delays all leads and loses none',
    patches: [
      {
        file: DELIVERY,
        find: 'isOfAll(reason) || unanswered === MAX_UNANSWERED',
        put: 'unanswered === MAX_UNANSWERED',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a field that was left empty is stored',
    suite: OUTBOX,
    caughtBy: "Node on SQLite: the service accepts what a form's own limits allow",
    patches: [
      {
        file: 'sdk/as-written.ts',
        find: "if (typeof value === 'string' && value.trim() === '') delete written[field];",
        put: '',
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
  {
    name: 'a number of rows that the driver does not return is taken for one',
    suite: 'test/e2e/sdk-outbox.test.ts',
    caughtBy: 'a driver without a result is refused by each operation, and no lead seems stored',
    patches: [
      { file: 'sdk/outbox/connection.ts', find: "throw unsuitable('the number of changed rows');", put: 'return 1;' },
    ],
    inSoak: true,
  },
  {
    name: 'the backoff of one lead is the pause of all',
    suite: OUTBOX,
    caughtBy:
      'Node on SQLite: once its cause has ended, a wait of all leads is over, and no one knocks while it is asked for',
    patches: [
      {
        file: ROWS,
        find: 'isShort ? pauseMs(retryAfterSeconds) : retryDelayMs(attempts, retryAfterSeconds)',
        put: 'retryDelayMs(attempts, retryAfterSeconds)',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the oldest lead is sent first, regardless of its attempts',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: leads that never get a response do not block the others',
    patches: [{ file: ROWS, text: 'ORDER BY attempts, next_attempt_at, created_at', put: 'ORDER BY created_at' }],
    inSoak: true,
  },
  {
    name: 'the outcome of a lead overwrites a concurrent change by a person',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: a change made by a person while a lead is in flight is kept',
    patches: [
      {
        file: ROWS,
        text: "} WHERE idempotency_key = ? AND state = 'waiting' AND next_attempt_at = ?",
        put: "} WHERE idempotency_key = ? AND state = 'waiting' AND ? > 0",
      },
    ],
    inSoak: true,
  },
];
