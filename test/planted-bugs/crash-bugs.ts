import type { PlantedBug } from './planted-bug.ts';

const KILLS = 'test/crash/kills.test.ts';
const STOPPING = 'test/crash/stopping.test.ts';
const OVERLOAD = 'test/crash/overload.test.ts';
const POWER_CUTS = 'test/crash/power-cuts.test.ts';
const OPEN_DATABASE = 'src/store/sqlite/open-database.ts';
const GROUP_COMMIT = 'src/store/sqlite/group-commit.ts';
const GATEWAY = 'gateway/app.ts';
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
    name: 'a commit does not wait for the disk',
    suite: POWER_CUTS,
    caughtBy: 'at any moment',
    patches: [{ file: OPEN_DATABASE, text: 'PRAGMA synchronous = FULL', put: 'PRAGMA synchronous = NORMAL' }],
  },
  {
    name: 'a lost reply of the core is reported as not written',
    suite: 'test/crash/cut-connections.test.ts',
    caughtBy:
      'a reply is cut after any number of its bytes: the caller gets a response, and a repetition gets the one lead',
    patches: [
      {
        file: 'gateway/core/core-problems.ts',
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
    name: 'the gateway sheds no load',
    suite: OVERLOAD,
    caughtBy: 'is refused while the core is suspended, and served again when it resumes',
    patches: [
      {
        file: 'gateway/admission/load-shedding.ts',
        find: 'core.isBusy(request.routeOptions.config.operation) ? refuse(request) : undefined',
        put: 'core ? undefined : refuse(request)',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the error of a closed core connection ends the gateway',
    suite: 'test/unit/core-sessions.test.ts',
    caughtBy:
      'when the core closes an idle connection as the next call comes, the call uses another one, and its error does not end the process',
    patches: [{ file: 'common/core-connection.ts', find: "session.on('error', ignoreError);", put: 'return stream;' }],
    inSoak: true,
  },
  {
    name: 'a process starts with a clock from before its release',
    suite: 'test/releases.test.ts',
    caughtBy: 'no process starts more than a day before the date of its release',
    patches: [
      {
        file: 'common/run-until-stopped.ts',
        find: 'Date.now() < Date.parse(RELEASED) - DAY_MS',
        put: 'Date.now() < DAY_MS',
      },
    ],
    inSoak: true,
  },
];
