import type { PlantedBug } from './planted-bug.ts';

const SCHEDULE = 'test/unit/webhook-schedule.test.ts';
const RECEIVERS = 'test/security/hostile-webhook-receivers.test.ts';

/** Faults of the relay. */
export const WEBHOOK_BUGS: readonly PlantedBug[] = [
  {
    name: 'two requests for one lead are in flight',
    suite: SCHEDULE,
    caughtBy: 'a receiver eventually has the newest state of each lead, in order, one request at a time',
    patches: [{ file: 'relay/schedule.ts', find: '!this.#begun.has(key)', put: "key !== ''" }],
  },
  {
    name: 'a window full of leads that an endpoint always rejects blocks all others',
    suite: SCHEDULE,
    caughtBy: 'a lead is delivered although more leads than a window holds keep failing',
    patches: [{ file: 'relay/retries.ts', find: 'health.failures >= WINDOW', put: 'attempts < 0' }],
  },
  {
    name: 'a receiver that requests a pause gets all waiting changes at once after it',
    suite: SCHEDULE,
    caughtBy: 'a receiver limited to N requests a second gets 3/4 of them, and none during its pauses',
    patches: [{ file: 'relay/endpoint-health.ts', find: 'maxInFlight: health.maxInFlight + 1', put: 'failures: 0' }],
  },
  {
    name: 'removing an endpoint from the file retries all others',
    suite: 'test/e2e/webhooks.test.ts',
    caughtBy: 'removing an endpoint does not disturb those whose entries stay',
    patches: [
      { file: 'relay/endpoint.ts', find: 'isSame(settings, this.#settings)', put: 'this.#stopping.signal.aborted' },
    ],
  },
  {
    name: 'one allowed address of a host suffices',
    suite: RECEIVERS,
    caughtBy: 'one forbidden address refuses all, even if private ones are allowed: ["127.0.0.1","169.254.169.254"]',
    patches: [
      {
        file: 'relay/send.ts',
        find: 'found.every(({ address }) => isAllowed(address, attempt.allowPrivate))',
        put: 'found.some(({ address }) => isAllowed(address, attempt.allowPrivate))',
      },
    ],
  },
  {
    name: 'a lead that a receiver rejects is acknowledged',
    suite: 'test/e2e/webhooks.test.ts',
    caughtBy: 'a change that the receiver rejects is retried after a delay and blocks no other lead',
    patches: [
      {
        file: 'relay/endpoint.ts',
        find: 'this.#setAside(change, outcome.code, failure.pauseMs)',
        put: 'this.#retryCall((core) => core.acknowledge(this.#name, [change]))',
      },
    ],
  },
];
