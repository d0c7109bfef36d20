import type { PlantedBug } from './planted-bug.ts';

const CONNECTIONS = 'gateway/open-connections.ts';
const CONNECTIONS_SUITE = 'test/integration/open-connections.test.ts';
const PIPELINE = 'gateway/pipelined-requests.ts';
const PIPELINE_SUITE = 'test/integration/pipelined-requests.test.ts';

/** Faults of the bounds on what clients of the gateway send and leave unread, and of its responses. */
export const EDGE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a connection with too many queued requests is still read',
    suite: PIPELINE_SUITE,
    caughtBy: 'while too many requests wait, their connection is not read, and reading resumes when there is room',
    patches: [{ file: PIPELINE, find: 'if (isPauseDue && !this.#isPaused) this.#pause();', put: '' }],
  },
  {
    name: 'a connection with many requests delays all others',
    suite: PIPELINE_SUITE,
    caughtBy: 'a connection full of requests is one caller among many',
    patches: [{ file: PIPELINE, find: 'setImmediate($CARRYON)', put: 'queueMicrotask($CARRYON)' }],
  },
  {
    name: 'the number of queued requests is unbounded',
    suite: PIPELINE_SUITE,
    caughtBy:
      'waiting requests of all connections are bounded: a connection that brings more ends after its waiting ones',
    patches: [{ file: PIPELINE, find: 'this.#allQueued.count < MAX_QUEUED_REQUESTS', put: 'true' }],
  },
  {
    name: 'requests after a response that closes the connection are executed',
    suite: 'test/security/request-smuggling.test.ts',
    caughtBy: 'end with a length above the maximum: nothing after it is executed',
    patches: [
      { file: PIPELINE, find: 'if (this.#socket.writable) this.#handle(next);', put: 'if (next) this.#handle(next);' },
    ],
  },
  {
    name: 'a connection that reads nothing is never closed',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'the connection is closed after the timeout, with a key and without',
    patches: [{ file: CONNECTIONS, find: 'now - unreadSince >= $TIMEOUT', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'bytes in the send buffer of the system count as read',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'the connection is closed when the unread response is in the buffer of the system only',
    patches: [{ file: CONNECTIONS, find: "queues.get(socketKey(socket) ?? '') ?? 0", put: '0' }],
    inSoak: true,
  },
  {
    name: 'a slow reader below the minimum rate keeps its connection',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'the connection is closed below the minimum rate, and stays open above it',
    patches: [
      {
        file: CONNECTIONS,
        find: 'readBytes - connection.readBytes >= MIN_READ_BYTES',
        put: 'readBytes > connection.readBytes',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the unread bytes of one key are unbounded',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'those to one key',
    patches: [{ file: CONNECTIONS, find: 'this.#closeBeyond(ofKey, MAX_UNREAD_BYTES_PER_KEY);', put: '' }],
  },
  {
    name: 'unread bytes are counted in characters',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'text to one key, by its bytes and not by its characters',
    patches: [
      {
        file: CONNECTIONS,
        find: 'Math.max(socket.writableLength, handle?.writeQueueSize ?? 0)',
        put: 'socket.writableLength',
      },
    ],
  },
  {
    name: 'the unread bytes of all keys are unbounded',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'those to all keys',
    patches: [{ file: CONNECTIONS, find: 'this.#closeBeyond(alike, MAX_UNREAD_BYTES);', put: '' }],
  },
  {
    name: 'the unread bytes of callers without a key are unbounded',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'those without a key, without effect on keys',
    patches: [{ file: CONNECTIONS, find: '[ofKeys, withoutKey]', put: '[ofKeys]' }],
    inSoak: true,
  },
  {
    name: 'the unread bytes of one address are unbounded',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'those to one address, whatever keys it has; another address is not affected',
    patches: [
      { file: CONNECTIONS, find: 'this.#closeBeyond(ofAddress, MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR);', put: '' },
    ],
    inSoak: true,
  },
  {
    name: 'one address may have all connections',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'one address cannot have all connections: another has its share, and closed ones are free again',
    patches: [{ file: CONNECTIONS, find: 'this.#server.maxConnections / ADDRESS_SHARE_DIVISOR', put: 'Infinity' }],
  },
  {
    name: 'a closed connection stays counted for its address',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'one address cannot have all connections: another has its share, and closed ones are free again',
    patches: [
      {
        file: CONNECTIONS,
        find: '(this.#countByAddress.get(address) ?? 0) - 1',
        put: 'this.#countByAddress.get(address) ?? 0',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a body in another charset is read as UTF-8',
    suite: 'test/e2e/http/bad-input.test.ts',
    caughtBy: 'a charset that is not UTF-8 is refused: application/json; charset=iso-8859-1',
    patches: [{ file: 'gateway/routes/read-capture.ts', find: 'charsets.every($VALID)', put: 'true' }],
  },
  {
    name: 'the Location of a creation does not name its lead',
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'gets the original response, byte for byte, and no second lead',
    patches: [
      {
        file: 'gateway/routes/leads.ts',
        find: "reply.code(201).header('location', $WHERE)",
        put: "reply.code(201).header('location', leadsPath + '/' + request.id)",
      },
    ],
  },
  {
    name: 'the JavaScript sample of the listing prints ids instead of names',
    suite: 'test/e2e/sdk-package.test.ts',
    caughtBy: 'the package runs the sample of each operation in the reference, in JavaScript and in TypeScript',
    patches: [
      { file: 'gateway/docs/code-samples.ts', text: 'console.log(lead.displayName);', put: 'console.log(lead.id);' },
    ],
    inSoak: true,
  },
  {
    name: 'the body of a creation with another media type is not read',
    suite: 'test/e2e/http/faults-together.test.ts',
    caughtBy: 'and a body with two faults reports all its faults together',
    patches: [
      { file: 'gateway/routes/read-capture.ts', find: "raw.headers['content-type'] = 'application/json';", put: '' },
    ],
  },
  {
    name: 'a wrong limit hides a forged cursor',
    suite: 'test/e2e/http/faults-together.test.ts',
    caughtBy: 'and a forged cursor reports all its faults together',
    patches: [
      {
        file: 'gateway/routes/leads.ts',
        find: "faults.length > 0 && typeof cursor === 'string'",
        put: "typeof cursor === 'number'",
      },
    ],
  },
  {
    name: 'a request whose body is malformed loses its id and its quota headers',
    suite: 'test/e2e/http/http-faults.test.ts',
    caughtBy: 'behind a good head keeps the request id and the quota headers: in one packet',
    patches: [
      {
        file: 'gateway/plugins/problem-json.ts',
        find: 'if (request && bodies.refuse(request, problem)) return;',
        put: '',
      },
    ],
  },
  {
    name: 'an address may make the core look up any number of keys',
    suite: 'test/e2e/http/unknown-keys.test.ts',
    caughtBy: 'are looked up a bounded number of times for one address; known keys, and other addresses, are served',
    patches: [{ file: 'gateway/plugins/unknown-keys.ts', find: '!decision.admitted', put: 'decision.waitMs > 0' }],
  },
  {
    name: 'methods of RTSP reach the router',
    suite: 'test/security/gateway-port-answers.test.ts',
    caughtBy:
      'whatever refuses a request, the answer is a problem, and is logged and counted once: a method of RTSP ([])',
    patches: [{ file: 'gateway/app.ts', find: 'onlyHttp(handler, publicUrl, observe)', put: 'handler' }],
  },
  {
    name: 'each refusal by the quota makes the core look up the key',
    suite: 'test/e2e/http/unknown-keys.test.ts',
    caughtBy: 'a refusal by the quota of a key makes the core look up nothing',
    patches: [
      {
        file: 'gateway/plugins/check-key-before-refusal.ts',
        find: 'UNCOUNTED.has(error.code)',
        put: 'key === undefined',
      },
    ],
  },
  {
    name: 'one studio may have all lists that wait',
    suite: 'test/e2e/http/lists-of-studios.test.ts',
    caughtBy: 'a studio that lists as much as it can leaves the lists of another one alone',
    patches: [
      {
        file: 'gateway/core-client.ts',
        find: 'list.weightOf(group) >= MAX_WAITING_LEADS_PER_STUDIO',
        put: 'list.weightOf(group) === MAX_WAITING_LEADS_PER_STUDIO - 1',
      },
    ],
  },
  {
    name: 'lists wait in the order of their arrival',
    suite: 'test/unit/exchange-batcher.test.ts',
    caughtBy: 'sends no more before there are results, and groups take turns meanwhile',
    patches: [{ file: 'gateway/exchange-batcher.ts', find: 'this.group = group;', put: "this.group = group && '';" }],
  },
];
