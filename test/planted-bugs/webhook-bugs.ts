import type { PlantedBug } from './planted-bug.ts';

const SCHEDULE = 'test/unit/webhook-schedule.test.ts';
const RECEIVERS = 'test/security/hostile-webhook-receivers.test.ts';

/** Faults of the relay. */
export const WEBHOOK_BUGS: readonly PlantedBug[] = [
  {
    name: 'two requests for one lead are in flight',
    suite: SCHEDULE,
    caughtBy:
      'the receiver takes the newest state of each lead at last, states of a lead in order, with one request for it at a time',
    patches: [{ file: 'relay/schedule.ts', find: '!this.#begun.has(key)', put: "key !== ''" }],
  },
  {
    name: 'a window full of leads that an endpoint never takes holds up all others',
    suite: SCHEDULE,
    caughtBy: 'more leads than a window has that the receiver never takes hold up no other for ever',
    patches: [{ file: 'relay/retries.ts', find: 'health.failures >= WINDOW', put: 'attempts < 0' }],
  },
  {
    name: 'a receiver that asks for a pause gets all that waits at once after it',
    suite: SCHEDULE,
    caughtBy: 'a receiver that takes N requests a second gets 3/4 of them, and nothing within its pauses',
    patches: [{ file: 'relay/endpoint-health.ts', find: 'maxInFlight: health.maxInFlight + 1', put: 'failures: 0' }],
  },
  {
    name: 'an endpoint that leaves the file has all others tried again',
    suite: 'test/e2e/webhooks.test.ts',
    caughtBy: 'disturbs no endpoint whose entry stays when another one leaves it',
    patches: [
      { file: 'relay/endpoint.ts', find: 'isSame(settings, this.#settings)', put: 'this.#stopping.signal.aborted' },
    ],
  },
  {
    name: 'one good address among bad ones is enough',
    suite: RECEIVERS,
    caughtBy: 'one bad address refuses all, also where private ones are allowed: ["127.0.0.1","169.254.169.254"]',
    patches: [
      {
        file: 'relay/send.ts',
        find: 'found.every(({ address }) => isAllowed(address, attempt.allowPrivate))',
        put: 'found.some(({ address }) => isAllowed(address, attempt.allowPrivate))',
      },
    ],
  },
  {
    name: 'a lead that a receiver does not take is acknowledged',
    suite: 'test/e2e/webhooks.test.ts',
    caughtBy: 'comes again after a pause, and holds up no other',
    patches: [
      {
        file: 'relay/endpoint.ts',
        find: 'this.#setAside(change, outcome.code, failure.pauseMs)',
        put: 'this.#repeated((core) => core.acknowledge(this.#name, [change]))',
      },
    ],
  },
];
