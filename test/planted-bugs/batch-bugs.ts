import type { PlantedBug } from './planted-bug.ts';

const RPC = 'test/integration/batches.test.ts';
const ITEMS = 'src/rpc/items.ts';
const COLLECTED = 'test/unit/collector.test.ts';
const COLLECTOR = 'gateway/collector.ts';
const GATHERED = 'test/unit/gathered.test.ts';
const GATHERER = 'src/store/mongo/gathered.ts';

/** Faults of what lets requests travel together. */
export const BATCH_BUGS: readonly PlantedBug[] = [
  {
    name: 'the core tells results in the order of the requests, whichever is known first',
    suite: RPC,
    caughtBy: 'BatchCreateLeads',
    patches: [
      {
        file: ITEMS,
        find: 'const results = known.splice(0, countThatFits(known, partOf));',
        put: 'const results = known.splice(0, countThatFits(known, partOf)).map((result, place) => ({ ...result, index: told + place }));',
      },
    ],
  },
  {
    name: 'the core counts requests by message',
    suite: RPC,
    caughtBy: 'in many messages: each result is that of its own request',
    patches: [{ file: ITEMS, find: 'begin(begun + position, $$$REST)', put: 'begin(position, $$$REST)' }],
    inSoak: true,
  },
  {
    name: 'a request of a batch is refused for what its neighbour is refused for',
    suite: RPC,
    caughtBy: 'a store that does not take the writes fails these alone, and the next ones are written',
    patches: [
      {
        file: ITEMS,
        find: 'const results = known.splice(0, countThatFits(known, partOf));',
        put: `const taken = known.splice(0, countThatFits(known, partOf));
    const refused = taken.find(({ outcome }) => outcome.case === 'error');
    const results = taken.map((result) => ({ ...result, outcome: (refused ?? result).outcome }));`,
      },
    ],
  },
  {
    name: 'all requests of a message are taken for the first key’s',
    suite: RPC,
    caughtBy: 'are about the studio of the key, whoever is beside them',
    patches: [
      {
        file: 'src/rpc/batches.ts',
        find: 'const secretSha256 = secretSha256s[place];',
        put: 'const [secretSha256] = secretSha256s;',
      },
    ],
  },
  {
    name: 'a key that was good once in a call is good to its end',
    suite: RPC,
    caughtBy: 'have their keys looked at anew for each message: LeadIntakeService/BatchCreateLeads',
    patches: [
      { file: ITEMS, find: 'const authenticateOnce = oncePerSecret(authenticate);', put: '' },
      {
        file: ITEMS,
        find: 'const allRead = $VALUE;',
        put: 'const authenticateOnce = oncePerSecret(authenticate); const allRead = $VALUE;',
      },
    ],
  },
  {
    name: 'all creations of a message with one key are taken to name the source of the first',
    suite: RPC,
    caughtBy: 'may name a source of that studio, each its own',
    patches: [
      {
        file: ITEMS,
        find: 'asked.get(name)',
        put: '[...asked].find(([each]) => each.startsWith(textOfHash(secretSha256)))?.[1]',
      },
    ],
  },
  {
    name: 'the gateway takes results in the order of its requests',
    suite: COLLECTED,
    caughtBy: 'requests of one turn share messages of at most 64',
    patches: [
      {
        file: 'gateway/sent-requests.ts',
        find: 'const request = this.#requests[place - this.#gone];',
        put: `place = this.#gone + this.#requests.findIndex((each) => each !== undefined);
              const request = this.#requests[place - this.#gone];`,
      },
    ],
  },
  {
    name: 'what one request was refused for, the gateway tells its neighbours too',
    suite: COLLECTED,
    caughtBy: 'one that fails fails alone, with what the other side said',
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
    caughtBy: 'its late result is nobody else’s, and the call goes on',
    patches: [
      {
        file: COLLECTOR,
        find: 'call.sent.take(result.index)?.settle(result);',
        put: 'call.sent.unanswered().find(({ isSettled }) => !isSettled)?.settle(result);',
      },
    ],
  },
  {
    name: 'an answer is shared with who comes after the request for it is sent',
    suite: COLLECTED,
    caughtBy: 'who comes after it is sent has a request of its own',
    patches: [
      {
        file: COLLECTOR,
        find: 'for (const waiting of message) { this.#shareNoMore(waiting); $$$REST }',
        put: 'for (const waiting of message) { $$$REST }',
      },
    ],
  },
  {
    name: 'what MongoDB answers to a batch is given to the wrong request',
    suite: GATHERED,
    caughtBy: 'requests of one turn go together, at most 64, and each gets its own answer',
    patches: [
      { file: GATHERER, find: 'resolve(answers[index] as Answer)', put: 'resolve(answers.at(-index) as Answer)' },
    ],
  },
  {
    name: 'of requests that are the same, those after the first go in batches of their own',
    suite: GATHERED,
    caughtBy: 'requests that are the same go as one, and nobody who comes later is told what a batch under way reads',
    patches: [
      {
        file: GATHERER,
        find: 'if (sharing) sharing.push(waiting); else $REST',
        put: 'this.#waiting.set(sharing ? waiting : name, [waiting]);',
      },
    ],
    inSoak: true,
  },
  {
    name: 'one request whose time is over takes its batch along',
    suite: GATHERED,
    caughtBy: 'a request whose deadline is over is not begun, and those beside it are',
    patches: [
      {
        file: GATHERER,
        find: 'const [first, ...others] = $IN_TIME;',
        put: 'const [first, ...others] = sharing; if (deadlines.some((deadline) => deadline.aborted)) continue;',
      },
      {
        file: GATHERER,
        find: 'for (const { deadline, reject } of sharing) if (deadline.aborted) reject(deadline.reason);',
        put: "for (const { deadline, reject } of sharing) if (deadlines.some((deadline) => deadline.aborted)) reject(deadline.reason ?? new Error('with its batch'));",
      },
      {
        file: GATHERER,
        find: 'const batch: Sharing<Request, Answer, Asker>[] = [];',
        put: 'const batch: Sharing<Request, Answer, Asker>[] = []; const deadlines = [...this.#waiting.values()].flat().map(({ deadline }) => deadline);',
      },
    ],
    inSoak: true,
  },
];
