import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/**
 * The subjects of the suites that `npm test` leaves out because they load the machine, take long or depend on time, by the
 * beginning of their paths.
 */
export const LONG: Readonly<Record<string, string>> = {
  'test/contract/mongo-address.test.ts': 'every option of an address to MongoDB',
  'test/contract/mongo-refusals.test.ts': 'refusals by a fake MongoDB',
  'test/contract/sqlite-erasure.test.ts': 'erasures in database files, some of them in use by a core',
  'test/crash/': 'kills, power failures, broken connections, overload',
  'test/e2e/callers.test.ts': 'the token that core and gateway share, changed while they serve',
  'test/e2e/command-faults.test.ts': 'each command without its file, its database, its reader or room for its output',
  'test/e2e/http/unknown-keys.test.ts': 'floods of unknown keys',
  'test/e2e/import-files.test.ts': 'each malformed line of an imported file',
  'test/e2e/left-clients.test.ts': 'clients that disconnect during a response',
  'test/e2e/log.test.ts': 'log lines of separate processes',
  'test/e2e/metrics.test.ts': 'metrics, some of separate processes',
  'test/e2e/processes.test.ts': 'drains and health checks of separate processes',
  'test/e2e/readiness.test.ts': 'readiness, second by second',
  'test/e2e/webhooks.test.ts': 'webhooks of relays that are killed, to receivers that are slow or wrong',
  'test/e2e/stopped-while-starting.test.ts': 'signals at each moment of a start',
  'test/e2e/rolling-restart.test.ts': 'a rolling restart under load',
  'test/integration/addresses.test.ts': 'each kind of address that a process listens on',
  'test/integration/idleness.test.ts': 'memory that a process holds after its last response',
  'test/integration/lingering.test.ts': 'connections that are read after their last response',
  'test/integration/lost-access.test.ts': 'streams of callers that lose access, and messages that arrive later',
  'test/integration/max-connection-age.test.ts': 'connections that are replaced by age',
  'test/integration/pipelining.test.ts': 'requests that clients send ahead, and slowly',
  'test/integration/request-rules.test.ts': 'each rule of the messages, with values that it accepts and refuses',
  'test/integration/reloads.test.ts': 'streams that stay open while files are reloaded',
  'test/integration/renewed-certificates.test.ts': 'certificates that are renewed while in use',
  'test/planted-bugs/': 'planted bugs',
  'test/security/cut-conversations.test.ts': 'clients that send two requests and disconnect at any moment',
  'test/security/core-port-answers.test.ts': 'malformed and unauthenticated requests to a core, sent slowly',
  'test/security/core-port-bounds.test.ts': 'floods of connections and calls',
  'test/security/core-port-shares.test.ts': 'callers that hold all connections of a core',
  'test/security/early-answers.test.ts': 'early responses to clients that still send, slowly',
  'test/security/hostile-input.test.ts': 'random hostile requests',
  'test/security/hostile-webhook-receivers.test.ts': 'receivers of webhooks that answer slowly, wrongly or without end',
  'test/security/malformed-frames.test.ts': 'malformed frames, and floods of them',
  'test/security/personal-data.test.ts': 'personal data in the output of each call and command',
  'test/security/terminal.test.ts': 'hostile names on a terminal',
  'test/security/unread-rest-answers.test.ts': 'responses that are not read',
  'test/simulation/mongo-': 'the store contract on a simulated replica set',
  'test/simulation/simulation.test.ts': 'lives of a whole deployment on a simulated machine',
  'test/unit/contact-keys.test.ts': 'the phone numbers of every region',
  'test/unit/core-sessions.test.ts': 'connections that fall silent',
  'test/unit/watched-files.test.ts': 'files that are watched for changes',
  'test/upgrade/': 'databases of the last release',
};

/** Matches the functions that define suites which run only where something is installed or allowed. */
const NEEDS_MORE = /\bdescribe(?:With\w+|If)\(/;

/** Suites that only `npm run soak` runs, with what the other lanes prove instead. */
export const ONLY_IN_SOAK: Readonly<Record<string, string>> = {
  'test/soak/isolation-in-time.test.ts':
    'that no response contains data of other studios; only a quiet machine can measure its time',
  'test/e2e/alerts.test.ts': 'each rule of Prometheus, on recorded series',
  'test/upgrade/neighbours.test.ts': 'databases and messages of the last release',
};

const isRun = (suite: string) => process.env.SOAK !== undefined || !(suite in ONLY_IN_SOAK);

const suitesIn = (folder: string) => globSync(`${folder}/**/*.test.ts`, { cwd: ROOT }).filter(isRun).toSorted();

const SUITES = suitesIn('test');

const needsMore = (suite: string) => NEEDS_MORE.test(readFileSync(join(ROOT, suite), 'utf8'));

/** The suites of `npm test`: they need only Node, and prove every rule of the contract, each RPC and each command. */
export const QUICK: readonly string[] = SUITES.filter(
  (suite) => !Object.keys(LONG).some((start) => suite.startsWith(start)) && !needsMore(suite),
);

/** Suites of `npm test` that take ten seconds or more, because they try many values or wait. */
export const SLOW = [
  'contract/memory-quota',
  'e2e/http/documented-answers',
  'e2e/http/overload',
  'e2e/http/quota',
  'e2e/http/written-docs',
  'integration/callers',
  'integration/export-leads',
  'unit/readiness',
];

/** The suites of `npm run test:fast`, for use while typing. They take less than a minute. */
export const FAST: readonly string[] = QUICK.filter(
  (suite) =>
    /^test\/(?:unit|contract|integration|e2e\/http)\//.test(suite) &&
    !SLOW.some((name) => suite === `test/${name}.test.ts`),
);

/** The suites that only `npm run test:all` runs. */
export const LEFT_OUT: readonly string[] = SUITES.filter((suite) => !QUICK.includes(suite));

/** The suites of LEFT_OUT that run in groups of their own, one group after the other, once all other suites have ended. */
export const APART: Readonly<Record<string, { readonly workers: number; readonly suites: readonly string[] }>> = {
  // Each needs a processor, because it waits for deadlines under load or measures the memory or time of a process.
  'by twos': {
    workers: 2,
    suites: [
      'test/simulation/mongo-contract.test.ts',
      'test/security/core-port-bounds.test.ts',
      'test/e2e/reused-port.test.ts',
      'test/integration/idleness.test.ts',
    ],
  },
  // This suite loads the whole machine, and would otherwise measure the load of others.
  alone: { workers: 1, suites: ['test/crash/overload.test.ts'] },
};

const isApart = (suite: string) => Object.values(APART).some(({ suites }) => suites.includes(suite));

/** The suites of LEFT_OUT that run concurrently. */
export const TOGETHER: readonly string[] = LEFT_OUT.filter((suite) => !isApart(suite));

/** The suite of the clients that waits for deadlines, so it runs apart from the others. */
export const CONFORMANCE = 'sdk/test/conformance.test.ts';
/** The other suites of the clients, and those of the examples. They test a running service. */
export const CLIENTS: readonly string[] = suitesIn('sdk/test').filter((suite) => suite !== CONFORMANCE);
export const EXAMPLES: readonly string[] = suitesIn('examples/test');

/** The longest suites, by the beginning of their paths. They start first, so that none of them runs alone at the end. */
export const LONGEST = [
  'test/simulation/simulation',
  'test/planted-bugs/',
  'examples/test/grpc',
  'examples/test/django',
  'examples/test/nextjs',
  'sdk/test/wordpress',
  'examples/test/rest',
  'examples/test/rails',
  'examples/test/laravel',
  'test/containers',
  'test/e2e/docs-in-browser',
  'test/contract/mongo-store',
  'sdk/test/generated-clients',
  'test/e2e/guides',
  'test/e2e/command-faults',
  'test/security/personal-data',
  'sdk/test/outbox/',
  'test/e2e/production-install',
  'test/simulation/mongo-contract',
];
