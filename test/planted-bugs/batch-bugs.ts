import type { PlantedBug } from './planted-bug.ts';

const BATCHES = 'test/integration/batches.test.ts';
const TOGETHER = 'test/integration/items.test.ts';
const EXCHANGED = 'test/integration/exchange.test.ts';
const ITEMS = 'src/rpc/items.ts';
const EXCHANGE = 'src/rpc/exchange-service.ts';
const COLLECTED = 'test/unit/exchange-batcher.test.ts';
const COLLECTOR = 'gateway/exchange-batcher.ts';
const GATHERED = 'test/unit/batcher.test.ts';
const GATHERER = 'src/store/mongo/batcher.ts';

/** Faults of what lets requests travel together. */
export const BATCH_BUGS: readonly PlantedBug[] = [
  {
    name: 'the core tells results in the order of the requests, whichever is known first',
    suite: EXCHANGED,
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
    name: 'the core counts requests by message',
    suite: TOGETHER,
    caughtBy: 'in many messages get the result of their own request',
    patches: [{ file: ITEMS, find: 'begin(begun + position, $$$REST)', put: 'begin(position, $$$REST)' }],
    inSoak: true,
  },
  {
    name: 'a request of a batch is refused for what its neighbour is refused for',
    suite: TOGETHER,
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
    name: 'all requests of a message are taken for the first key’s',
    suite: BATCHES,
    caughtBy: 'use the studio of their key, whatever the other requests',
    patches: [
      {
        file: 'src/rpc/batches.ts',
        find: 'const secretSha256 = secretSha256s[index];',
        put: 'const [secretSha256] = secretSha256s;',
      },
    ],
  },
  {
    name: 'a key that was good once in a call is good to its end',
    suite: EXCHANGED,
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
    name: 'all creations of a message with one key are taken to name the source of the first',
    suite: EXCHANGED,
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
    name: 'all items of a message are taken for the first key’s',
    suite: EXCHANGED,
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
    name: 'a hash that goes on with a source’s id is taken for the key that names this source',
    suite: EXCHANGED,
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
    name: 'the core does not look at the scopes of a key',
    suite: EXCHANGED,
    caughtBy:
      'that has only API_KEY_SCOPE_LEADS_READ is refused other items, whatever else is wrong, and nothing is written',
    patches: [{ file: EXCHANGE, find: 'refuseUnlessScoped(bearer, operation.scope);', put: '' }],
  },
  {
    name: 'the core looks at the scopes of a key when it has done what was asked for',
    suite: EXCHANGED,
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
    name: 'a body has whatever is known of a lead, its contact too',
    suite: EXCHANGED,
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
    name: 'every page says that it is the last one',
    suite: EXCHANGED,
    caughtBy: 'of a page has the cursor of the next one, and null on the last',
    patches: [{ file: EXCHANGE, find: 'nextCursor: page.nextPageToken || null', put: 'nextCursor: null' }],
  },
  {
    name: 'a repetition whose source is gone answers the lead as it is now',
    suite: EXCHANGED,
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
    name: 'all results that are known go in one message, however long they are',
    suite: EXCHANGED,
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
    name: 'a message of results goes on after it is full',
    suite: EXCHANGED,
    caughtBy: 'share a message with short results until it is full',
    patches: [{ file: ITEMS, find: 'const isFull = full >= 1;', put: 'const isFull = full >= 2;' }],
    inSoak: true,
  },
  {
    name: 'the core makes pages for whoever takes none, as long as they are not too many',
    suite: EXCHANGED,
    caughtBy: 'are not read for a caller that does not read its results, and all arrive once it does',
    patches: [{ file: 'src/rpc/exchange-service.ts', find: 'pageLimit(request.value.pageSize)', put: '1' }],
    inSoak: true,
  },
  {
    name: 'a core that does not know the exchange is told as a fault of this service',
    suite: 'test/e2e/http/core-away.test.ts',
    caughtBy: 'every operation is refused, nothing is written and the gateway is not ready, until the core is updated',
    patches: [
      {
        file: 'gateway/core-problems.ts',
        find: 'new Set([Code.Internal, $$$REST])',
        put: 'new Set([Code.Internal, Code.Unimplemented, $$$REST])',
      },
    ],
  },
  {
    name: 'the gateway takes results in the order of its requests',
    suite: COLLECTED,
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
    name: 'what one request was refused for, the gateway tells its neighbours too',
    suite: COLLECTED,
    caughtBy: 'a request that fails does not affect others, and gets the error of the other side',
    patches: [
      {
        file: COLLECTOR,
        find: 'for (const result of results) $DO',
        put: `const refused = results.find((result) => 'error' in result);
              for (const result of results.map((each) => ({ ...(refused ?? each), index: each.index }))) $DO`,
      },
    ],
  },
  {
    name: 'a late result is taken for that of the next request',
    suite: COLLECTED,
    caughtBy: 'its late result goes to no other request, and the call continues',
    patches: [
      {
        file: COLLECTOR,
        find: 'call.sent.take(result.index)?.settle(result);',
        put: 'call.sent.pending().find(({ isSettled }) => !isSettled)?.settle(result);',
      },
    ],
  },
  {
    name: 'an answer is shared with who comes after the request for it is sent',
    suite: COLLECTED,
    caughtBy: 'a request made after it was sent is separate',
    patches: [
      {
        file: COLLECTOR,
        find: 'for (const pending of message) { this.#stopCoalescing(pending); $$$REST }',
        put: 'for (const pending of message) { $$$REST }',
      },
    ],
  },
  {
    name: 'what MongoDB answers to a batch is given to the wrong request',
    suite: GATHERED,
    caughtBy: 'requests of one turn are sent together, at most 64, and each gets its own result',
    patches: [
      { file: GATHERER, find: 'resolve(results[index] as Result)', put: 'resolve(results.at(-index) as Result)' },
    ],
  },
  {
    name: 'of requests that are the same, those after the first go in batches of their own',
    suite: GATHERED,
    caughtBy: 'equal requests are sent as one, and later ones do not share the result of a batch in flight',
    patches: [
      {
        file: GATHERER,
        find: 'if (equal) equal.push(pending); else $REST',
        put: 'this.#pending.set(equal ? pending : key, [pending]);',
      },
    ],
    inSoak: true,
  },
  {
    name: 'one request whose time is over takes its batch along',
    suite: GATHERED,
    caughtBy: 'a request whose deadline has passed is not sent, and others are',
    patches: [
      {
        file: GATHERER,
        find: 'const [first, ...others] = $IN_TIME;',
        put: 'const [first, ...others] = equal; if (deadlines.some((deadline) => deadline.aborted)) continue;',
      },
      {
        file: GATHERER,
        find: 'for (const { deadline, reject } of equal) if (deadline.aborted) reject(deadline.reason);',
        put: "for (const { deadline, reject } of equal) if (deadlines.some((deadline) => deadline.aborted)) reject(deadline.reason ?? new Error('with its batch'));",
      },
      {
        file: GATHERER,
        find: 'const batch: EqualRequests<Request, Result, Caller>[] = [];',
        put: 'const batch: EqualRequests<Request, Result, Caller>[] = []; const deadlines = [...this.#pending.values()].flat().map(({ deadline }) => deadline);',
      },
    ],
    inSoak: true,
  },
];
