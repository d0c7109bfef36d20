import type { PlantedBug } from './planted-bug.ts';

const EXCHANGE_SUITE = 'test/integration/exchange.test.ts';
const EXCHANGE = 'src/rpc/exchange-service.ts';

/** Faults of the exchange and of writes that go to MongoDB together. */
export const BATCH_BUGS: readonly PlantedBug[] = [
  {
    name: 'the batcher keeps an entry of each caller that it has sent for',
    suite: 'test/integration/idleness.test.ts',
    caughtBy: 'once all requests are answered, a process has no entry, listener or timer of them',
    patches: [
      {
        file: 'gateway/core/exchange-batcher.ts',
        find: 'this.#pendingByGroup.delete(group)',
        put: 'this.#pendingByGroup.set(group, 0)',
      },
    ],
  },
  {
    name: 'the core numbers results in the order of completion',
    suite: EXCHANGE_SUITE,
    caughtBy: 'in one message',
    patches: [
      { file: EXCHANGE, find: 'let pendingLeads = 0;', put: 'let pendingLeads = 0; let place = 0;' },
      {
        file: EXCHANGE,
        find: 'sent.map(({ result }) => result)',
        put: 'sent.map(({ result }) => ({ ...result, index: place++ }))',
      },
    ],
  },
  {
    name: 'a core does not wait for a gateway that reads nothing',
    suite: EXCHANGE_SUITE,
    caughtBy: 'are not read for a caller that does not read its results, and all arrive once it does',
    patches: [
      {
        file: 'src/rpc/exchange-stream.ts',
        find: "if (!isBelowHighWaterMark) await once(stream, 'drain', { signal });",
        put: '',
      },
    ],
  },
  {
    name: 'a message that is cut off counts as refused by the core',
    suite: 'test/crash/cut-connections.test.ts',
    caughtBy:
      'a reply is cut after any number of its bytes: the caller gets a response, and a repetition gets the one lead',
    patches: [{ file: 'common/envelopes.ts', find: 'new Error(message)', put: 'undefined' }],
  },
  {
    name: 'the core does not check the scopes of a key',
    suite: EXCHANGE_SUITE,
    caughtBy:
      'that has only API_KEY_SCOPE_LEADS_READ is refused other items, whatever else is wrong, and nothing is written',
    patches: [{ file: EXCHANGE, find: 'refuseUnlessScoped(bearer, SCOPE_OF[request.case as KeyOperation]);', put: '' }],
  },
];
