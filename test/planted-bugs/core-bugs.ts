import type { PlantedBug } from './planted-bug.ts';

const HEALTH = 'test/integration/health-and-reflection.test.ts';
const PORT = 'test/security/core-port-bounds.test.ts';
const CALLER_AUTHENTICATION = 'src/rpc/caller-authentication.ts';
const CALLER_ACCESS = 'src/rpc/caller-access.ts';
const CALLERS = 'test/integration/callers.test.ts';
const HEALTH_SERVICE = 'src/rpc/health-service.ts';
const CONNECTIONS = 'src/http2/connections.ts';
const CONNECTION = 'src/http2/connection.ts';

/** Faults of the core's port, of callers, health and shutdown. */
export const CORE_BUGS: readonly PlantedBug[] = [
  {
    name: 'reflection requires no token',
    suite: HEALTH,
    caughtBy: 'reflection requires the token, like everything but health',
    patches: [
      {
        file: CALLER_AUTHENTICATION,
        find: 'service.typeName === Health.typeName',
        put: "!service.typeName.startsWith('leadintake.')",
      },
    ],
  },
  {
    name: 'a core that shares its port leaves it only at the end of its drain',
    suite: 'test/e2e/reused-port.test.ts',
    caughtBy: 'src/main.ts with REUSE_PORT leaves its port at once when it stops, and serves its connections',
    patches: [{ file: 'src/app.ts', find: 'config.REUSE_PORT && leavePort(server.server)', put: 'undefined' }],
    inSoak: true,
  },
  {
    name: 'a caller may call methods outside its roles',
    suite: CALLERS,
    caughtBy: 'read may call its own methods and no others',
    patches: [
      {
        file: CALLER_ACCESS,
        find: 'if (roles.some((role) => may.has(role))) return undefined;',
        put: 'return undefined;',
      },
    ],
  },
  {
    name: 'a caller restricted to some studios may call methods across all studios',
    suite: CALLERS,
    caughtBy: 'has access to these only, and not to methods across all studios',
    patches: [
      {
        file: CALLER_ACCESS,
        find: 'studioId !== undefined && studios.has(studioId)',
        put: 'studioId === undefined || studios.has(studioId)',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a gateway restricted to some studios authenticates keys of others',
    suite: CALLERS,
    caughtBy: 'as a gateway, gets the same refusal for the keys of other studios as for unknown ones',
    patches: [
      {
        file: 'src/usecases/authenticate-api-key.ts',
        find: 'studios?.has(credential.studio.id) === false',
        put: 'false',
      },
    ],
    inSoak: true,
  },
  {
    name: 'open streams continue after their caller is removed from the file',
    suite: CALLERS,
    caughtBy: 'applies to new calls immediately, and ends open ones without losing a result',
    patches: [
      {
        file: 'src/rpc/run-call.ts',
        find: 'takeUntil(withdrawn, request.message)',
        put: 'request.message',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a request without a body waits for one',
    suite: 'test/e2e/http/http-faults.test.ts',
    caughtBy: 'a creation without a body and a length gets a response: of HTTP/1.1',
    patches: [
      {
        file: 'gateway/http-server.ts',
        find: '(payload as Readable).readableEnded ? Readable.from([]) : payload',
        put: 'payload',
      },
    ],
    inSoak: true,
  },
  {
    name: 'health is available with a wrong token',
    suite: HEALTH,
    caughtBy: 'health is available without a token and with the right one, and refused with a wrong one',
    patches: [
      {
        file: CALLER_AUTHENTICATION,
        find: "if (!caller && requestHeader.has('authorization')) throw connectErrorOf(unauthenticated());",
        put: '',
      },
    ],
  },
  {
    name: 'a stopping core reports SERVING',
    suite: HEALTH,
    caughtBy: 'reports SERVING immediately, and NOT_SERVING before the core stops',
    patches: [
      {
        file: HEALTH_SERVICE,
        find: 'const isServing = !draining.aborted && (await store.fault()) === undefined;',
        put: 'const isServing = (await store.fault()) === undefined;',
      },
    ],
  },
  {
    name: 'the number of unauthenticated health watchers is unbounded',
    suite: HEALTH,
    caughtBy:
      'without a token is limited to a number of concurrent watchers, and unlimited with it; one that ends its call makes room for another',
    patches: [
      {
        file: HEALTH_SERVICE,
        find: 'isUnauthenticated && unauthenticatedWatchers >= MAX_UNAUTHENTICATED_WATCHERS',
        put: 'false',
      },
    ],
  },
  {
    name: 'each health call checks the store',
    suite: HEALTH,
    caughtBy: 'any number of health calls, by Check or Watch, check the store once a second',
    patches: [
      {
        file: 'common/readiness.ts',
        find: 'return this.#latest;',
        put: "return this.#check().then(() => undefined, () => 'away');",
      },
    ],
  },
  {
    name: 'the reason for not being ready is logged only once',
    suite: 'test/unit/readiness.test.ts',
    caughtBy: 'the reason is logged when it changes and again while it lasts, and its end is logged',
    patches: [
      {
        file: 'common/readiness.ts',
        find: 'if (logged?.reason === reason && now - logged.at < LOG_INTERVAL_MS) return;',
        put: 'if (logged) return;',
      },
    ],
  },
  {
    name: 'a connection stays open after an unauthenticated call',
    inSoak: true,
    suite: PORT,
    caughtBy:
      'a connection ends with its first call that requires the token and has no token, and the call gets its response',
    patches: [{ file: CONNECTIONS, find: 'connection.cutOff(AFTER_REFUSAL_MS);', put: '' }],
  },
  {
    name: 'the number of unauthenticated connections is unbounded',
    suite: PORT,
    caughtBy: 'silent connections are bounded in number, and affect neither callers with the token nor health watchers',
    patches: [
      {
        file: CONNECTIONS,
        find: 'if (others.length <= MAX_UNAUTHENTICATED_CONNECTIONS) return;',
        put: 'return;',
      },
    ],
  },
  {
    name: 'connections that authenticate at the same moment all displace the same idle connection',
    suite: PORT,
    caughtBy: 'closes idle authenticated connections to admit 64 more at the same moment, and none that is in use',
    patches: [
      {
        file: CONNECTIONS,
        find: '[...this.#byPeer.values()].filter(({ isOpen }) => isOpen)',
        put: '[...this.#byPeer.values()]',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the number of unauthenticated calls on a connection is unbounded',
    suite: PORT,
    caughtBy:
      'a connection may make health checks for any time, and is closed when it makes far more than a probe does',
    patches: [
      {
        file: CONNECTION,
        find: 'return this.#probes.begun <= MAX_CALLS_PER_SECOND && this.calls.size <= MAX_CONCURRENT_CALLS;',
        put: 'return true;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a caller whose calls never end keeps all connections of a core',
    suite: 'test/security/core-port-shares.test.ts',
    caughtBy:
      'a caller of low privilege with all connections, each with an export that it does not read, keeps no other out; without its access, its connections end',
    patches: [{ file: CONNECTIONS, find: 'name === newcomer.name ? undefined : byUse[0]', put: 'undefined' }],
    inSoak: true,
  },
  {
    name: 'streams continue that were opened with CORE_TOKEN before the callers file listed it',
    suite: 'test/integration/lost-access.test.ts',
    caughtBy:
      'nothing arrives by any stream after its caller presents CORE_TOKEN, which the file lists with other roles, and its connection ends',
    patches: [{ file: 'src/rpc/callers.ts', find: 'this.#shared.withdraw();', put: '' }],
    inSoak: true,
  },
  {
    name: 'Node answers an unknown expectation by itself',
    suite: 'test/security/core-port-answers.test.ts',
    caughtBy: 'an unknown expectation, over HTTP/2',
    patches: [
      {
        file: 'src/server.ts',
        find: "['request', 'checkContinue', 'checkExpectation']",
        put: "['request', 'checkContinue']",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a unary message that cannot be decoded is an internal error',
    suite: 'test/integration/undecoded-messages.test.ts',
    caughtBy:
      'is INVALID_REQUEST, logged and counted once: a message that ends in the middle, LeadIntakeService/GetLead, application/grpc',
    patches: [
      {
        file: 'src/rpc/undecoded-messages.ts',
        find: "method.methodKind === 'unary'",
        put: "method.methodKind === 'no'",
      },
    ],
  },
  {
    name: 'an unread response of the core is buffered without a time limit',
    inSoak: true,
    suite: PORT,
    caughtBy: 'an unread response is cancelled, and one that is read, and a waiting call, are not',
    patches: [
      {
        file: 'src/http2/call-in-flight.ts',
        find: 'return this.stalledChecks > MAX_STALLED_CHECKS;',
        put: 'return false;',
      },
    ],
  },
  {
    name: 'missed keepalive pings do not close a connection',
    suite: PORT,
    caughtBy: 'a connection that does not reply to pings is closed, and one that does is not',
    patches: [
      {
        file: CONNECTION,
        find: 'if (missed < MAX_MISSED_PINGS) return;',
        put: 'if (missed) return;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the deadline of a stop includes its drain',
    suite: 'test/e2e/processes.test.ts',
    caughtBy: 'may drain for longer than any other deadline, serves until then, and ends with status 0',
    patches: [{ file: 'common/run-until-stopped.ts', find: 'running.drainMs + STOP_MS', put: 'STOP_MS' }],
    inSoak: true,
  },
  {
    name: 'a failed count of lead changes is cached',
    suite: 'test/integration/core-metrics.test.ts',
    caughtBy: 'after a failed count, lead changes are counted again with the next collection',
    patches: [{ file: 'src/rpc/metrics.ts', find: 'counted = undefined;', put: '' }],
  },
];
