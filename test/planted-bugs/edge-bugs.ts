import type { PlantedBug } from './planted-bug.ts';

const CONNECTIONS = 'gateway/socket/connections.ts';
const CONNECTIONS_SUITE = 'test/integration/open-connections.test.ts';
const PIPELINE_SUITE = 'test/integration/pipelining.test.ts';

/** Faults of the bounds on what clients of the gateway send and leave unread, and of its responses. */
export const EDGE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a core that refuses the gateway is an internal error to callers',
    suite: 'test/unit/core-problems.test.ts',
    caughtBy: 'a call or an item that ends with Unauthenticated is integration_unavailable',
    patches: [
      {
        file: 'gateway/core/core-problems.ts',
        find: 'new Set([Code.Internal, Code.InvalidArgument])',
        put: 'new Set([Code.Internal, Code.InvalidArgument, Code.Unauthenticated])',
      },
    ],
  },
  {
    name: 'a trusted proxy that names no client is not reported',
    inSoak: true,
    suite: 'test/unit/client-address.test.ts',
    caughtBy: 'a proxy that sends no header is the client, and the log says so once and without an address',
    patches: [{ file: 'gateway/client-address.ts', find: "if (rest === undefined) warn('absent');", put: '' }],
  },
  {
    name: 'a body is parsed, however many values it has',
    suite: 'test/security/work-of-refusals.test.ts',
    caughtBy: 'a request with as many elements of a list as it can have costs hardly more than another',
    patches: [
      { file: 'gateway/operations/leads.ts', find: 'if (hasTooManyValues(bytes)) return UNREADABLE;', put: '' },
    ],
  },
  {
    name: 'a download that its client ends is an error in the log',
    suite: 'test/e2e/left-clients.test.ts',
    caughtBy: 'clients that leave at each kind of response write no warning and no error into the log',
    patches: [
      {
        file: 'gateway/socket/problem-json.ts',
        find: "error.code === 'ERR_STREAM_PREMATURE_CLOSE' && request.raw.socket.destroyed",
        put: 'false',
      },
    ],
  },
  {
    name: 'a connection with many requests delays all others',
    inSoak: true,
    suite: PIPELINE_SUITE,
    caughtBy: 'a connection full of requests is one caller among many',
    patches: [{ file: CONNECTIONS, find: 'setImmediate($CARRYON)', put: 'queueMicrotask($CARRYON)' }],
  },
  {
    name: 'the number of queued requests is unbounded',
    suite: PIPELINE_SUITE,
    caughtBy:
      'waiting requests of all connections are bounded: a connection that brings more ends after its waiting ones',
    patches: [{ file: CONNECTIONS, find: 'this.#waiting < MAX_WAITING_REQUESTS', put: 'true' }],
  },
  {
    name: 'requests after a response that closes the connection are executed',
    suite: 'test/security/request-smuggling.test.ts',
    caughtBy: 'end with a length above the maximum: nothing after it is executed',
    patches: [{ file: CONNECTIONS, find: 'if (socket.writable) turns[0]?.();', put: 'turns[0]?.();' }],
  },
  {
    name: 'a connection that reads nothing is never closed',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'the connection is closed after the timeout, with a key and without',
    patches: [{ file: CONNECTIONS, find: 'now - unreadSince >= $TIMEOUT', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'the unread bytes of one key are unbounded',
    suite: CONNECTIONS_SUITE,
    caughtBy: 'those to one key',
    patches: [{ file: CONNECTIONS, find: 'this.#closeBeyond(MAX_UNREAD_BYTES_PER_KEY, $OFKEYS, $BYKEY);', put: '' }],
  },
  {
    name: 'one address may have all connections',
    inSoak: true,
    suite: CONNECTIONS_SUITE,
    caughtBy: 'one address cannot have all connections: another has its share, and closed ones are free again',
    patches: [{ file: CONNECTIONS, find: 'server.maxConnections / ADDRESS_SHARE_DIVISOR', put: 'Infinity' }],
  },
  {
    name: 'a request whose body is malformed loses its id and its quota headers',
    suite: 'test/e2e/http/http-faults.test.ts',
    caughtBy: 'behind a good head keeps the request id and the quota headers: in one packet',
    patches: [{ file: CONNECTIONS, find: 'connection.fault = problem;', put: 'return answer(arriving);' }],
  },
  {
    name: 'an address may make the core look up any number of keys',
    suite: 'test/e2e/http/unknown-keys.test.ts',
    caughtBy: 'are looked up a bounded number of times for one address; known keys, and other addresses, are served',
    patches: [
      {
        file: 'gateway/admission/authentication.ts',
        find: 'let decision = await begin(network);',
        put: 'let decision = { ...(await begin(network)), admitted: true };',
      },
    ],
  },
  {
    name: 'a call to a core that has vanished is used on',
    suite: 'test/unit/exchange-batcher.test.ts',
    caughtBy:
      'a call without a result meanwhile is left to what it has, and ends with that: bound of what is sent undefined',
    patches: [
      {
        file: 'gateway/core/exchange-batcher.ts',
        find: 'if (pending.call?.resultCount === pending.resultsBefore && this.#call === pending.call) this.#call = undefined;',
        put: '',
      },
    ],
  },
  {
    name: 'an address that sends malformed keys is refused as fast as it sends',
    inSoak: true,
    suite: 'test/e2e/http/unknown-keys.test.ts',
    caughtBy:
      'of an address with too many of them, refusals wait; a known key, and another address, do not: it is malformed',
    patches: [{ file: 'gateway/admission/authentication.ts', find: 'if (!admitted) await holdRefusal();', put: '' }],
  },
  {
    name: 'an error of a connection that has left HTTP ends the gateway',
    suite: 'test/security/cut-conversations.test.ts',
    caughtBy: 'outlives whoever sends two requests at once and leaves at any moment',
    patches: [{ file: 'gateway/socket/connections.ts', find: "socket.on('error', ignore);", put: '' }],
  },
  {
    name: 'a body that nobody needs is read without an end',
    inSoak: true,
    suite: 'test/e2e/http/body-size.test.ts',
    caughtBy:
      'of a body that nobody needs no more is read, and its client gets the response: with a key that is not valid',
    patches: [
      { file: 'gateway/socket/http-server.ts', find: 'isUnbounded || Number(length) > MAX_BODY_BYTES', put: 'false' },
    ],
  },
  {
    name: 'a connection whose request is not read yet is closed at once after its answer',
    suite: 'test/security/early-answers.test.ts',
    caughtBy: 'before a route: CONNECT',
    patches: [{ file: CONNECTIONS, find: 'this.#lingering.watch(socket);', put: '' }],
  },
  {
    name: 'a client that waits for 100 gets it before its head is read',
    inSoak: true,
    suite: 'test/security/early-answers.test.ts',
    caughtBy: 'no 100 comes before an answer by the head: no key',
    patches: [
      {
        file: 'gateway/socket/http-server.ts',
        find: 'continueWhenRead(request, response);',
        put: 'response.writeContinue();',
      },
    ],
  },
  {
    name: 'any number of connections linger after their last answer',
    suite: 'test/integration/lingering.test.ts',
    caughtBy: 'when more connections linger than the bound allows, the oldest one ends',
    patches: [{ file: 'common/lingering.ts', find: 'this.#sockets.size > this.#max', put: 'false' }],
  },
  {
    name: 'a key that is repeated is looked up for each request',
    suite: 'test/unit/key-look-ups.test.ts',
    caughtBy: 'one look-up finds the owner for all who come meanwhile; only for the first it is a check',
    patches: [{ file: 'gateway/admission/key-look-ups.ts', find: 'this.#underWay.set(name, lookUp);', put: '' }],
  },
  {
    name: 'lists wait in the order of their arrival',
    inSoak: true,
    suite: 'test/unit/exchange-batcher.test.ts',
    caughtBy: 'sends no more before there are results, and groups take turns meanwhile',
    patches: [
      { file: 'gateway/core/exchange-batcher.ts', find: 'const { group } = pending.share;', put: "const group = '';" },
    ],
  },
];
