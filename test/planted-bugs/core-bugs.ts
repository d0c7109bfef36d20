import type { PlantedBug } from './planted-bug.ts';

const HEALTH = 'test/integration/health-and-reflection.test.ts';
const PORT = 'test/security/core-port-bounds.test.ts';
const CALLER_ACCESS = 'src/rpc/callers.ts';
const CALLERS = 'test/integration/callers.test.ts';
const HEALTH_SERVICE = 'src/rpc/health-service.ts';
const AUDIT = 'test/integration/audit.test.ts';
const WITH_EVENT =
  'every method that writes leaves an event with the name of its caller and the id of the call, or has a reason';
const CONNECTIONS = 'src/port/connections.ts';

/** Faults of the core's port, of callers, health and shutdown. */
export const CORE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a source that is removed leaves no event',
    inSoak: true,
    suite: AUDIT,
    caughtBy: WITH_EVENT,
    patches: [
      {
        file: 'src/store/decisions/directory.ts',
        find: "return [{ action: 'studio-source-changed', ...actorIn(by), time, from, to }];",
        put: "return source ? [{ action: 'studio-source-changed', ...actorIn(by), time, from, to }] : [];",
      },
    ],
  },
  {
    name: 'whatever a caller sends as the id of its call is in the audit log',
    inSoak: true,
    suite: AUDIT,
    caughtBy: WITH_EVENT,
    patches: [{ file: CALLER_ACCESS, find: 'isRequestId(callId) ? callId : null', put: 'callId' }],
  },
  {
    name: 'in JSON, a filter by a stage that there is not matches every lead',
    inSoak: true,
    suite: 'test/integration/grpc.test.ts',
    caughtBy: 'a stage that there is not, which only JSON can carry, is no filter that matches every lead',
    patches: [{ file: 'src/rpc/routes.ts', find: 'if (field) throw unreadable(field);', put: '' }],
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
    name: 'open streams continue after their caller is removed from the file',
    suite: CALLERS,
    caughtBy: 'applies to new calls immediately, and ends open ones without losing a result',
    patches: [
      {
        file: 'src/rpc/call-handler.ts',
        find: 'takeUntil(withdrawn, request.message)',
        put: 'request.message',
      },
    ],
    inSoak: true,
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
    name: 'the number of unauthenticated connections is unbounded',
    inSoak: true,
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
    name: 'a caller whose calls never end keeps all connections of a core',
    suite: 'test/security/core-port-shares.test.ts',
    caughtBy:
      'a caller of low privilege with all connections, each with an export that it does not read, keeps no other out; without its access, its connections end',
    patches: [{ file: CONNECTIONS, find: 'name === newcomer.name ? undefined : byUse[0]', put: 'undefined' }],
    inSoak: true,
  },
  {
    name: 'an unread response of the core is buffered without a time limit',
    inSoak: true,
    suite: PORT,
    caughtBy: 'an unread response is cancelled, and one that is read, and a waiting call, are not',
    patches: [
      {
        file: 'src/port/connection.ts',
        find: 'this.stalledChecks > MAX_STALLED_CHECKS',
        put: 'false',
      },
    ],
  },
  {
    name: 'a day that is not on the calendar becomes one of the next month',
    suite: 'test/integration/request-rules.test.ts',
    caughtBy: 'each request in JSON is refused for a time that is none, and read with a valid one',
    patches: [{ file: 'src/rpc/routes.ts', find: '!new Date(day).toISOString().startsWith(day)', put: 'false' }],
  },
  {
    name: 'a list may name studios that the caller may not access',
    suite: CALLERS,
    caughtBy: 'learns from no list of a request whether another studio has a lead, or exists',
    patches: [
      {
        file: 'src/rpc/callers.ts',
        find: 'named.every((studioId) => studios.has(studioId))',
        put: 'named.slice(0, 1).every((studioId) => studios.has(studioId))',
      },
    ],
  },
  {
    name: 'a display name may be one code point longer than the contract allows',
    inSoak: true,
    suite: 'test/integration/request-rules.test.ts',
    caughtBy: 'LeadIntakeService/CreateLead: the rules in the contract and the core agree on its request',
    patches: [
      {
        file: 'common/rules/field-rules.ts',
        find: 'displayName: { min: 1, max: 160 }',
        put: 'displayName: { min: 1, max: 161 }',
      },
    ],
  },
];
