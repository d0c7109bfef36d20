import type { PlantedBug } from './planted-bug.ts';

const HEALTH = 'test/integration/health-and-reflection.test.ts';
const CALLERS = 'test/integration/callers.test.ts';
const SCOPE = 'src/rpc/connect-scope.ts';
const ANSWERS = 'test/security/core-port-answers.test.ts';
const HEALTH_SERVICE = 'src/rpc/health-service.ts';

/** Faults of the core's port, of callers, health and shutdown. */
export const CORE_BUGS: readonly PlantedBug[] = [
  {
    name: "the framework's router decides which method a path names",
    suite: ANSWERS,
    caughtBy: 'with a token, a path with an encoded letter gets its answer, and is logged and counted once',
    patches: [{ file: SCOPE, find: 'if (!handler) return 404;', put: 'if (!handler) return undefined;' }],
  },
  {
    name: 'a caller may call methods outside its roles',
    suite: CALLERS,
    caughtBy: 'read may call its own methods and no others',
    patches: [
      {
        file: 'src/rpc/callers.ts',
        find: 'if (roles.some((role) => may.has(role))) return undefined;',
        put: 'return undefined;',
      },
    ],
  },
  {
    name: 'a stopping core reports SERVING',
    suite: HEALTH,
    caughtBy: "watching a core's health reports SERVING at once, and NOT_SERVING before it stops",
    patches: [
      {
        file: HEALTH_SERVICE,
        find: 'const isServing = !draining.aborted && (await store.fault()) === undefined;',
        put: 'const isServing = (await store.fault()) === undefined;',
      },
    ],
  },
  {
    name: 'a date that does not exist is read as one of the next month',
    suite: 'test/integration/request-rules.test.ts',
    caughtBy: 'JSON is refused if a time is invalid or an enum word is unknown, and read otherwise',
    patches: [{ file: 'src/rpc/routes.ts', find: '!new Date(day).toISOString().startsWith(day)', put: 'false' }],
  },
  {
    name: 'a list may name studios that the caller may not access',
    suite: CALLERS,
    caughtBy: 'no list in a request tells a caller whether another studio exists or has a lead',
    patches: [
      {
        file: 'src/rpc/callers.ts',
        find: 'named.every((studioId) => studios.has(studioId))',
        put: 'named.slice(0, 1).every((studioId) => studios.has(studioId))',
      },
    ],
  },
];
