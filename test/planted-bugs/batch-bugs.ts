import type { PlantedBug } from './planted-bug.ts';

const EXCHANGE_SUITE = 'test/integration/exchange.test.ts';
const EXCHANGE = 'src/rpc/exchange-service.ts';

/** Faults of the exchange. */
export const BATCH_BUGS: readonly PlantedBug[] = [
  {
    name: 'the batcher retains an entry for each caller that it has served',
    suite: 'test/integration/idleness.test.ts',
    caughtBy: 'after all responses, a process has no entry, listener or timer left of the requests',
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
    caughtBy: 'each item of a message gets the result of the corresponding single call',
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
    name: 'a core keeps sending to a gateway that does not read',
    suite: EXCHANGE_SUITE,
    caughtBy: 'pages are not read while the caller reads no results, and all arrive once it does',
    patches: [
      {
        file: 'src/rpc/exchange-stream.ts',
        find: "if (!isBelowHighWaterMark) await once(stream, 'drain', { signal });",
        put: '',
      },
    ],
  },
  {
    name: 'a truncated message counts as a refusal by the core',
    suite: 'test/crash/cut-connections.test.ts',
    caughtBy: 'after a reply is cut at any byte, the caller gets a response and a repetition the one lead',
    patches: [{ file: 'common/envelopes.ts', find: 'new Error(message)', put: 'undefined' }],
  },
  {
    name: 'the core does not check the scopes of a key',
    suite: EXCHANGE_SUITE,
    caughtBy: 'a key with only API_KEY_SCOPE_LEADS_READ is refused all other items, and nothing is written',
    patches: [{ file: EXCHANGE, find: 'refuseUnlessScoped(bearer, SCOPE_OF[request.case as KeyOperation]);', put: '' }],
  },
  {
    name: 'the messages of a call share the pages that they read',
    suite: EXCHANGE_SUITE,
    caughtBy: 'a list has each lead that was acknowledged before its message',
    patches: [
      { file: EXCHANGE, find: 'const once = shared();', put: '' },
      { file: EXCHANGE, find: 'let pendingLeads = 0;', put: 'let pendingLeads = 0; const once = shared();' },
    ],
  },
  {
    name: 'the items of a message share pages of different studios',
    suite: EXCHANGE_SUITE,
    caughtBy: 'a key accesses only its own studio, whatever the other items',
    patches: [
      { file: EXCHANGE, find: "['page', studioId, pageSize, pageToken]", put: "['page', pageSize, pageToken]" },
    ],
  },
];
