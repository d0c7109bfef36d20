import type { PlantedBug } from './planted-bug.ts';

const CONNECTIONS = 'gateway/port/connections.ts';
const PIPELINE_SUITE = 'test/integration/pipelining.test.ts';

/** Faults of the bounds on what clients of the gateway send and leave unread, of its responses, connections and packages; and of clients. */
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
    name: 'a body is parsed, however many values it has',
    suite: 'test/security/work-of-refusals.test.ts',
    caughtBy: 'a request with as many elements of a list as it can have costs hardly more than another',
    patches: [{ file: 'gateway/routes/leads.ts', find: 'if (hasTooManyValues(bytes)) return UNREADABLE;', put: '' }],
  },
  {
    name: 'a download that its client ends is an error in the log',
    suite: 'test/e2e/left-clients.test.ts',
    caughtBy: 'clients that leave at each kind of response write no warning and no error into the log',
    patches: [
      {
        file: 'gateway/port/problem-json.ts',
        find: "error.code === 'ERR_STREAM_PREMATURE_CLOSE' && request.raw.socket.destroyed",
        put: 'false',
      },
    ],
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
        find: 'const decision = await consumePatiently(quota, caller, LIMITS);',
        put: 'const decision = { ...(await consumePatiently(quota, caller, LIMITS)), admitted: true };',
      },
    ],
  },
  {
    name: 'a call to a core that has vanished is used on',
    suite: 'test/unit/exchange-batcher.test.ts',
    caughtBy: 'a batcher keeps its promises whatever happens in whatever order',
    patches: [
      {
        file: 'gateway/core/exchange-batcher.ts',
        find: "if (hasStalled) call.state = next(call.state, 'stalls');",
        put: '',
      },
    ],
  },
  {
    name: 'an error of a connection that has left HTTP ends the gateway',
    suite: 'test/security/cut-conversations.test.ts',
    caughtBy: 'outlives whoever sends two requests at once and leaves at any moment',
    patches: [{ file: 'gateway/port/connections.ts', find: "socket.on('error', ignore);", put: '' }],
  },
  {
    name: 'a connection whose request is not read yet is closed at once after its answer',
    suite: 'test/security/early-answers.test.ts',
    caughtBy: 'before a route: CONNECT',
    patches: [{ file: CONNECTIONS, find: 'this.#lingering.watch(socket);', put: '' }],
  },
  {
    name: 'a kept release names a file outside of its folder',
    suite: 'test/e2e/http/packages.test.ts',
    caughtBy: 'cannot name a file elsewhere: "../secret"',
    patches: [{ file: 'gateway/docs/packages.ts', find: '!/^\\w[\\w.+-]*$/.test(name)', put: 'false' }],
  },
  {
    name: 'a gateway does not retry a call refused unprocessed',
    suite: 'test/integration/max-connection-age.test.ts',
    caughtBy: 'a gateway retries what a core refuses unprocessed on an old connection, and its callers see no error',
    patches: [
      {
        file: 'common/core-connection.ts',
        find: "cause.message.endsWith('NGHTTP2_REFUSED_STREAM')",
        put: 'cause.message === undefined',
      },
    ],
  },
  {
    name: 'the error of a mistyped key repeats it',
    suite: 'sdk/test/secrets.test.ts',
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
