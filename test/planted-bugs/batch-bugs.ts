import type { PlantedBug } from './planted-bug.ts';

const ITEMS_SUITE = 'test/integration/items.test.ts';
const EXCHANGE_SUITE = 'test/integration/exchange.test.ts';
const ITEMS = 'src/rpc/items.ts';
const EXCHANGE = 'src/rpc/exchange-service.ts';
const EXCHANGE_BATCHER_SUITE = 'test/unit/exchange-batcher.test.ts';
const EXCHANGE_BATCHER = 'gateway/exchange-batcher.ts';
const BATCHER_SUITE = 'test/unit/batcher.test.ts';
const BATCHER = 'src/store/mongo/batcher.ts';

/** Faults of the exchange and of writes that go to MongoDB together. */
export const BATCH_BUGS: readonly PlantedBug[] = [
  {
    name: 'the core numbers results in the order of completion',
    suite: EXCHANGE_SUITE,
    caughtBy: 'in one message',
    patches: [
      { file: ITEMS, find: 'let pendingLeads = 0;', put: 'let pendingLeads = 0; let place = 0;' },
      {
        file: ITEMS,
        find: 'sent.map(({ result }) => result)',
        put: 'sent.map(({ result }) => ({ ...result, index: place++ }))',
      },
    ],
  },
  {
    name: 'the core numbers items separately in each message',
    suite: ITEMS_SUITE,
    caughtBy: 'in many messages get the result of their own request',
    patches: [{ file: ITEMS, find: 'begin(begun + position, $$$REST)', put: 'begin(position, $$$REST)' }],
    inSoak: true,
  },
  {
    name: 'all results of a message get the error of one failed item',
    suite: ITEMS_SUITE,
    caughtBy: 'fail alone when the store refuses their writes, and later ones are written',
    patches: [
      {
        file: ITEMS,
        find: 'sent.map(({ result }) => result)',
        put: `sent.map(({ result }) => {
          const { outcome } = (sent.find((one) => one.result.outcome.case === 'error') ?? { result }).result;
          return { ...result, outcome };
        })`,
      },
    ],
  },
  {
    name: 'a key is authenticated only once in a call',
    suite: EXCHANGE_SUITE,
    caughtBy: 'is checked again for each message, with its permissions',
    patches: [
      { file: ITEMS, find: 'const authenticateOnce = oncePerSecret(authenticateForCaller);', put: '' },
      {
        file: ITEMS,
        find: 'const allRead = $VALUE;',
        put: 'const authenticateOnce = oncePerSecret(authenticateForCaller); const allRead = $VALUE;',
      },
    ],
  },
  {
    name: 'one authentication of a key is shared by items that name different sources',
    suite: EXCHANGE_SUITE,
    caughtBy: 'may name only sources of its own studio, separately for each item',
    patches: [
      {
        file: ITEMS,
        find: 'begun.get(key)',
        put: '[...begun].find(([each]) => each.startsWith(textOfHash(secretSha256)))?.[1]',
      },
    ],
  },
  {
    name: 'all items of an exchange message use the first key',
    suite: EXCHANGE_SUITE,
    caughtBy: 'gives access to its own studio only, whatever the other items',
    patches: [
      {
        file: EXCHANGE,
        find: 'return items.map((item) => itemOf(item, caller));',
        put: 'return items.map((item) => itemOf({ ...item, secretSha256: items[0].secretSha256 }, caller));',
      },
    ],
  },
  {
    name: 'shared authentications are keyed by hash and source id without a separator',
    suite: EXCHANGE_SUITE,
    caughtBy: 'is distinguished from another whose hash is followed by the bytes of a source id',
    patches: [
      {
        file: ITEMS,
        find: 'const key = $KEY;',
        put: "const key = textOfHash(secretSha256) + (sourceId ?? '');",
      },
    ],
  },
  {
    name: 'the core does not check the scopes of a key',
    suite: EXCHANGE_SUITE,
    caughtBy:
      'that has only API_KEY_SCOPE_LEADS_READ is refused other items, whatever else is wrong, and nothing is written',
    patches: [{ file: EXCHANGE, find: 'refuseUnlessScoped(bearer, operation.scope);', put: '' }],
  },
  {
    name: 'the core checks the scopes of a key after the operation',
    suite: EXCHANGE_SUITE,
    caughtBy:
      'that has only API_KEY_SCOPE_LEADS_READ is refused other items, whatever else is wrong, and nothing is written',
    patches: [
      { file: EXCHANGE, find: 'refuseUnlessScoped(bearer, operation.scope);', put: '' },
      {
        file: EXCHANGE,
        find: 'return operation.execute($$$REQUEST);',
        put: 'const result = await operation.execute($$$REQUEST); refuseUnlessScoped(bearer, operation.scope); return result;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a response body has all fields of a lead',
    suite: EXCHANGE_SUITE,
    caughtBy: 'of a lead and of a page has the created leads, without their contacts',
    patches: [
      {
        file: 'common/rules/public-lead.ts',
        find: 'return { id, displayName, $$$REST };',
        put: 'return { ...lead, displayName, $$$REST };',
      },
    ],
  },
  {
    name: 'no page has a next cursor',
    suite: EXCHANGE_SUITE,
    caughtBy: 'of a page has the cursor of the next one, and null on the last',
    patches: [{ file: EXCHANGE, find: 'nextCursor: page.nextPageToken || null', put: 'nextCursor: null' }],
  },
  {
    name: 'a replay with a disabled source returns the current lead',
    suite: EXCHANGE_SUITE,
    caughtBy: 'of a repetition is the original one, byte for byte, whatever changes of the lead and its source',
    patches: [
      {
        file: 'src/usecases/create-lead.ts',
        find: 'return { lead: asCreated(lead), replayed: true };',
        put: 'return { lead, replayed: true };',
      },
    ],
  },
  {
    name: 'a message of results has no size limit',
    suite: EXCHANGE_SUITE,
    caughtBy: 'forty are returned whole, in messages within the limit of gRPC clients: four bytes each',
    patches: [
      {
        file: ITEMS,
        find: 'const sent = ready.splice(0, $COUNT);',
        put: 'const sent = ready.splice(0);',
      },
    ],
  },
  {
    name: 'a message of results may have twice the size limit',
    suite: EXCHANGE_SUITE,
    caughtBy: 'share a message with short results until it is full',
    patches: [{ file: ITEMS, find: 'const isFull = full >= 1;', put: 'const isFull = full >= 2;' }],
    inSoak: true,
  },
  {
    name: 'a requested page counts as one pending lead',
    suite: EXCHANGE_SUITE,
    caughtBy: 'are not read for a caller that does not read its results, and all arrive once it does',
    patches: [{ file: 'src/rpc/exchange-service.ts', find: 'pageLimit(request.value.pageSize)', put: '1' }],
    inSoak: true,
  },
  {
    name: 'the gateway ignores the index of a result',
    suite: EXCHANGE_BATCHER_SUITE,
    caughtBy: 'requests of one turn share messages of at most 64',
    patches: [
      {
        file: 'gateway/in-flight-requests.ts',
        find: 'const request = this.#requests[index - this.#removed];',
        put: `index = this.#removed + this.#requests.findIndex((each) => each !== undefined);
              const request = this.#requests[index - this.#removed];`,
      },
    ],
  },
  {
    name: 'the gateway gives the error of one request to all requests of its message',
    suite: EXCHANGE_BATCHER_SUITE,
    caughtBy: 'a request that fails does not affect others, and gets the error of the other side',
    patches: [
      {
        file: EXCHANGE_BATCHER,
        find: 'for (const result of results) $DO',
        put: `const refused = results.find((result) => 'error' in result);
              for (const result of results.map((each) => ({ ...(refused ?? each), index: each.index }))) $DO`,
      },
    ],
  },
  {
    name: 'a late result settles another request',
    suite: EXCHANGE_BATCHER_SUITE,
    caughtBy: 'a late result settles no other request, and the call continues',
    patches: [
      {
        file: EXCHANGE_BATCHER,
        find: 'call.sent.take(result.index)?.settle(result);',
        put: 'call.sent.pending().find(({ isSettled }) => !isSettled)?.settle(result);',
      },
    ],
  },
  {
    name: 'a request shares the result of an equal one that is already sent',
    suite: EXCHANGE_BATCHER_SUITE,
    caughtBy: 'a request made after it was sent is separate',
    patches: [
      {
        file: EXCHANGE_BATCHER,
        find: 'for (const pending of message) { this.#stopCoalescing(pending); $$$REST }',
        put: 'for (const pending of message) { $$$REST }',
      },
    ],
  },
  {
    name: 'results of a MongoDB batch are given to the wrong requests',
    suite: BATCHER_SUITE,
    caughtBy: 'requests of one turn are sent together, at most 64, and each gets its own result',
    patches: [
      { file: BATCHER, find: 'resolve(results[index] as Result)', put: 'resolve(results.at(-index) as Result)' },
    ],
  },
  {
    name: 'equal requests are not coalesced',
    suite: BATCHER_SUITE,
    caughtBy: 'equal requests are sent as one, and later ones do not share the result of a batch in flight',
    patches: [
      {
        file: BATCHER,
        find: 'if (equal) equal.push(pending); else $REST',
        put: 'this.#pending.set(equal ? pending : key, [pending]);',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an expired request fails its whole batch',
    suite: BATCHER_SUITE,
    caughtBy: 'a request whose deadline has passed is not sent, and others are',
    patches: [
      {
        file: BATCHER,
        find: 'const [first, ...others] = $IN_TIME;',
        put: 'const [first, ...others] = equal; if (deadlines.some((deadline) => deadline.aborted)) continue;',
      },
      {
        file: BATCHER,
        find: 'for (const { deadline, reject } of equal) if (deadline.aborted) reject(deadline.reason);',
        put: "for (const { deadline, reject } of equal) if (deadlines.some((deadline) => deadline.aborted)) reject(deadline.reason ?? new Error('with its batch'));",
      },
      {
        file: BATCHER,
        find: 'const batch: EqualRequests<Request, Result, Caller>[] = [];',
        put: 'const batch: EqualRequests<Request, Result, Caller>[] = []; const deadlines = [...this.#pending.values()].flat().map(({ deadline }) => deadline);',
      },
    ],
    inSoak: true,
  },
];
