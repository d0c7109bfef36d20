import type { PlantedBug } from './planted-bug.ts';

const KILLS = 'test/crash/kills.test.ts';
const STOPPING = 'test/crash/stopping.test.ts';
const OVERLOAD = 'test/crash/overload.test.ts';
const POWER_CUTS = 'test/crash/power-cuts.test.ts';
const OPEN_DATABASE = 'src/store/sqlite/open-database.ts';
const GROUP_COMMIT = 'src/store/sqlite/group-commit.ts';
const GATEWAY = 'gateway/app.ts';
const HTTP_SERVER = 'gateway/http-server.ts';
const IN_ORDER =
  'stops under load after one signal or two: accepted requests are answered completely, and others write nothing';

/** Faults that show only when processes crash, stop or are overloaded. */
export const CRASH_BUGS: readonly PlantedBug[] = [
  {
    name: 'leads are acknowledged before they are committed',
    suite: KILLS,
    caughtBy: 'kills of core, gateway and Redis, on SQLite',
    patches: [
      {
        file: GROUP_COMMIT,
        find: "this.#database.exec('BEGIN IMMEDIATE');",
        put: "if (!this.#database.isTransaction) this.#database.exec('BEGIN IMMEDIATE');",
      },
      {
        file: GROUP_COMMIT,
        find: "this.#database.exec('COMMIT');",
        // The first commits are durable: only leads are lost, not their studio.
        put: `this.commits = (this.commits ?? 0) + 1;
              if (this.commits < 12 || Math.random() < 0.02) this.#database.exec('COMMIT');`,
      },
    ],
    inSoak: true,
  },
  {
    name: 'a log does not say how many lines are missing',
    suite: 'test/e2e/unwritable-outputs.test.ts',
    caughtBy: 'a log whose reader was late has whole lines, and one that says how many are missing',
    patches: [
      {
        file: 'common/log-output.ts',
        find: 'if (dropped > 0) this.onRecovered(dropped);',
        put: '',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a commit does not wait for the disk',
    suite: POWER_CUTS,
    caughtBy: 'at any moment',
    patches: [{ file: OPEN_DATABASE, text: 'PRAGMA synchronous = FULL', put: 'PRAGMA synchronous = NORMAL' }],
  },
  {
    name: 'the folder of a new database is not flushed to the disk',
    suite: POWER_CUTS,
    caughtBy: 'during a checkpoint of the database',
    patches: [{ file: OPEN_DATABASE, find: 'fsyncSync(opened);', put: '' }],
    inSoak: true,
  },
  {
    name: 'the log is removed before the database is flushed to the disk',
    suite: POWER_CUTS,
    caughtBy: 'once the core has stopped',
    patches: [
      {
        file: 'src/store/sqlite/sqlite-store.ts',
        find: 'if (database.isOpen) database.close();',
        put: "if (database.isOpen) { database.exec('PRAGMA synchronous = OFF'); database.close(); }",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a lost reply of the core is reported as not written',
    suite: 'test/crash/cut-connections.test.ts',
    caughtBy:
      'a reply is cut after any number of its bytes: the caller gets a response, and a repetition gets the one lead',
    patches: [
      {
        file: 'gateway/core-problems.ts',
        find: "isFault ? 'internal_error' : 'integration_unavailable'",
        put: "isFault ? 'internal_error' : 'integration_rate_unavailable'",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a stopping gateway closes connections with requests in flight',
    suite: STOPPING,
    caughtBy: `the gateway ${IN_ORDER}`,
    patches: [
      { file: GATEWAY, find: 'await app.close();', put: 'app.server.closeAllConnections(); await app.close();' },
    ],
    inSoak: true,
  },
  {
    name: 'a second SIGTERM ends a stopping process immediately',
    suite: STOPPING,
    caughtBy: `the core ${IN_ORDER}`,
    patches: [
      {
        file: 'common/stop-request.ts',
        find: 'process.on(event, $STOP)',
        put: 'process.once(event, $STOP)',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the gateway sheds no load',
    suite: OVERLOAD,
    caughtBy: 'is refused while the core is suspended, and served again when it resumes',
    patches: [
      {
        file: 'gateway/plugins/load-shedding.ts',
        find: 'core.isBusy(request.routeOptions.config.operation) ? refuse(request) : undefined',
        put: 'core ? undefined : refuse(request)',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a request may arrive without a timeout',
    suite: OVERLOAD,
    caughtBy: 'a thousand slow or silent connections are closed in time, and delay no other client',
    patches: [
      { file: HTTP_SERVER, find: 'requestTimeout: pipelined.arrivalMs', put: 'requestTimeout: 0' },
      { file: HTTP_SERVER, find: 'headersTimeout: pipelined.arrivalMs', put: 'headersTimeout: 0' },
    ],
    inSoak: true,
  },
  {
    name: 'the error of a closed core connection ends the gateway',
    suite: 'test/unit/core-sessions.test.ts',
    caughtBy:
      'when the core closes an idle connection as the next call comes, the call uses another one, and its error does not end the process',
    patches: [{ file: 'gateway/core-sessions.ts', find: "session.on('error', ignoreError);", put: 'return stream;' }],
    inSoak: true,
  },
  {
    name: 'closed connections stay in memory',
    suite: 'test/crash/vanishing-callers.test.ts',
    caughtBy: 'callers that disconnect at any moment leave no memory in gateway or core, and no duplicate lead',
    patches: [
      {
        file: 'gateway/pipelined-requests.ts',
        find: 'readonly #connections = new WeakMap<Socket, PipelineQueue>()',
        put: 'readonly #connections = new Map<Socket, PipelineQueue>()',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a call waits for a core connection without a timeout',
    suite: 'test/unit/core-sessions.test.ts',
    caughtBy: 'a call that gets no connection in time fails',
    patches: [
      {
        file: 'gateway/core-sessions.ts',
        find: 'this.#withTimeout(super.request(method, path, all, options))',
        put: 'super.request(method, path, all, options)',
      },
    ],
  },
];
