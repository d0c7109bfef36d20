import type { PlantedBug } from './planted-bug.ts';

const CONNECTIONS = 'gateway/port/connections.ts';
const PIPELINE_SUITE = 'test/integration/pipelining.test.ts';

/** Faults of clients, and of the gateway: its limits on requests and unread data, responses, connections and packages. */
export const EDGE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a core that refuses the gateway is an internal error to callers',
    suite: 'test/unit/core-problems.test.ts',
    caughtBy: 'a call or an item that ends with Unauthenticated becomes integration_unavailable',
    patches: [
      {
        file: 'gateway/core/core-problems.ts',
        find: 'new Set([Code.Internal, Code.InvalidArgument])',
        put: 'new Set([Code.Internal, Code.InvalidArgument, Code.Unauthenticated])',
      },
    ],
  },
  {
    name: 'the number of values in a parsed body is unbounded',
    suite: 'test/security/work-of-refusals.test.ts',
    caughtBy: 'a request with as many elements of a list as it can have costs hardly more than any other',
    patches: [{ file: 'gateway/routes/leads.ts', find: 'if (hasTooManyValues(bytes)) return UNREADABLE;', put: '' }],
  },
  {
    name: 'a download that its client aborts is logged as an error',
    suite: 'test/e2e/left-clients.test.ts',
    caughtBy: 'clients that disconnect during any kind of response cause no warnings or errors in the log',
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
    caughtBy: 'waiting requests are limited, and a connection that brings too many ends after its own',
    patches: [{ file: CONNECTIONS, find: 'this.#waiting < MAX_WAITING_REQUESTS', put: 'true' }],
  },
  {
    name: 'requests after a response that closes the connection are executed',
    suite: 'test/security/request-smuggling.test.ts',
    caughtBy: 'a connection executes no request after a length above the maximum',
    patches: [{ file: CONNECTIONS, find: 'if (socket.writable) removed[0]?.();', put: 'removed[0]?.();' }],
  },
  {
    name: 'a request whose body is malformed loses its id and its quota headers',
    suite: 'test/e2e/http/http-faults.test.ts',
    caughtBy: 'a bad body after a good head keeps the request id and the quota headers: in one packet',
    patches: [{ file: CONNECTIONS, find: 'connection.fault = problem;', put: 'return answer(arriving);' }],
  },
  {
    name: 'the number of key look-ups for an address is unbounded',
    suite: 'test/e2e/http/unknown-keys.test.ts',
    caughtBy: 'look-ups of unknown keys are limited by address; known keys and other addresses are served',
    patches: [
      {
        file: 'gateway/admission/authentication.ts',
        find: 'const decision = await consumePatiently(quota, caller, LIMITS);',
        put: 'const decision = { ...(await consumePatiently(quota, caller, LIMITS)), admitted: true };',
      },
    ],
  },
  {
    name: 'a call to a core that has vanished stays in use',
    suite: 'test/unit/exchange-batcher.test.ts',
    caughtBy: 'a batcher keeps its promises under any sequence of events',
    patches: [
      {
        file: 'gateway/core/exchange-batcher.ts',
        find: "if (hasStalled) call.state = next(call.state, 'stalls');",
        put: '',
      },
    ],
  },
  {
    name: 'an error of a connection that has left HTTP stops the gateway',
    suite: 'test/security/cut-conversations.test.ts',
    caughtBy: 'the port survives clients that send two requests at once and leave at any moment',
    patches: [{ file: 'gateway/port/connections.ts', find: "socket.on('error', ignore);", put: '' }],
  },
  {
    name: 'a connection with an unread request is closed immediately after the response',
    suite: 'test/security/early-answers.test.ts',
    caughtBy: 'a late reader gets a refusal before the route: CONNECT',
    patches: [{ file: CONNECTIONS, find: 'this.#lingering.watch(socket);', put: '' }],
  },
  {
    name: 'a release of earlier packages names a file outside of its folder',
    suite: 'test/e2e/http/packages.test.ts',
    caughtBy: 'earlier packages cannot name a file elsewhere: "../secret"',
    patches: [{ file: 'gateway/docs/packages.ts', find: '!/^\\w[\\w.+-]*$/.test(name)', put: 'false' }],
  },
  {
    name: 'a gateway does not retry a call refused unprocessed',
    suite: 'test/integration/max-connection-age.test.ts',
    caughtBy: 'a gateway retries calls that an old connection refused unprocessed, without an error',
    patches: [
      {
        file: 'common/core-connection.ts',
        find: "cause.message.endsWith('NGHTTP2_REFUSED_STREAM')",
        put: 'cause.message === undefined',
      },
    ],
  },
  {
    name: 'the error about a mistyped key contains it',
    suite: 'sdk/test/secrets.test.ts',
    caughtBy: 'no TypeScript error or inspected object reveals the key or the visitor',
    patches: [
      {
        file: 'sdk/configuration.ts',
        find: 'faultOfKey(apiKey)',
        put: 'faultOfKey(apiKey)?.concat(apiKey)',
      },
    ],
  },
  {
    name: 'the page of an outbox takes requests without its header',
    suite: 'sdk/test/outbox/outbox.test.ts',
    caughtBy: 'Node on SQLite: the page refuses requests that are not its own, and then changes nothing',
    patches: [
      {
        file: 'sdk/outbox/page.ts',
        find: "String(headers['x-outbox-page']).trim() !== '1'",
        put: 'headers === undefined',
      },
    ],
  },
];
