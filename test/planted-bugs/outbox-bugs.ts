import type { PlantedBug } from './planted-bug.ts';

const OUTBOX = 'test/outbox/outbox.test.ts';
const ROWS = 'sdk/outbox/lead-rows.ts';
const DELIVERY = 'sdk/outbox/delivery.ts';
const RECONCILE = 'sdk/outbox/reconcile.ts';

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
    name: 'a comparison counts every lead as being there',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: what was sent is compared with the service, and each difference is told',
    patches: [{ file: RECONCILE, find: "found === undefined || found === 'not_read' ? 0 : 1", put: '1' }],
    inSoak: true,
  },
  {
    name: 'an outbox of an earlier release cannot compare',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: what was sent is compared with the service, and each difference is told',
    patches: [{ file: 'sdk/outbox/memo.ts', find: 'await setUpMemo(connection, table);', put: '' }],
    inSoak: true,
  },
  {
    name: 'a comparison that was killed begins anew',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: thousands of leads are compared by pages, whatever ends it in between',
    patches: [{ file: RECONCILE, find: 'run === undefined || run.isComplete', put: 'true || run?.isComplete' }],
    inSoak: true,
  },
  {
    name: 'a comparison goes on with the key of another studio',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: thousands of leads are compared by pages, whatever ends it in between',
    patches: [{ file: RECONCILE, find: 'seen !== null', put: 'seen !== seen' }],
    inSoak: true,
  },
  {
    name: 'a comparison goes on beside a later one',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: thousands of leads are compared by pages, whatever ends it in between',
    patches: [{ file: RECONCILE, find: 'const token = randomUUID();', put: "const token = 'one for all';" }],
    inSoak: true,
  },
  {
    name: 'a comparison reads pages, however few leads are left',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: a few leads among very many of others are read one by one',
    patches: [{ file: RECONCILE, find: 'run.idlePages < run.rows - doneIn(run)', put: 'true' }],
    inSoak: true,
  },
  {
    name: 'a comparison uses the whole quota',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: half of the quota is left to the website',
    patches: [
      { file: 'sdk/outbox/paced-reads.ts', find: 'quota.remaining * 2 > quota.limit', put: 'quota.remaining > 0' },
    ],
    inSoak: true,
  },
  {
    name: 'a lead that is there is sent again',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: sends a lead again that is not there, and only then, with its key',
    patches: [{ file: 'sdk/outbox/send-again.ts', find: 'row.lead_id !== null', put: 'row.lead_id === undefined' }],
    inSoak: true,
  },
  {
    name: 'what waits is told in each pass',
    suite: OUTBOX,
    caughtBy: 'Node on SQLite: what has waited for longer than a day is told once a day',
    patches: [{ file: 'sdk/outbox/waiting.ts', find: 'if (Math.abs(now - Number(token)) < DAY_MS) return;', put: '' }],
    inSoak: true,
  },
  {
    name: 'a client finds no fault in a note that is too long',
    inSoak: true,
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
        find: 'faultOfKey(apiKey)',
        put: 'faultOfKey(apiKey)?.concat(apiKey)',
      },
    ],
  },
];
