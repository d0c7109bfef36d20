import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/**
 * The suites that `npm test` leaves out because they load the machine, take long or depend on time, by the beginning of their
 * paths, with their subjects.
 */
export const LONG: Readonly<Record<string, string>> = {
  'test/contract/mongo-address.test.ts': 'every option of an address to MongoDB',
  'test/contract/mongo-refusals.test.ts': 'refusals of a MongoDB, by a server that plays it',
  'test/contract/sqlite-erasure.test.ts': 'erasures, beside cores of their own',
  'test/crash/': 'kills, power failures, broken connections, overload',
  'test/e2e/callers.test.ts': 'the token that core and gateway share, changed while they serve',
  'test/e2e/command-faults.test.ts': 'each command without its files, its studio, its reader or a disk for its output',
  'test/e2e/http/unknown-keys.test.ts': 'floods of keys that nobody has',
  'test/e2e/import-files.test.ts': 'each malformed line of an imported file',
  'test/e2e/left-clients.test.ts': 'clients that leave while they are answered',
  'test/e2e/log.test.ts': 'the lines of the log, of processes of their own',
  'test/e2e/metrics.test.ts': 'the metrics of processes of their own',
  'test/e2e/processes.test.ts': 'drains, and health checks of containers',
  'test/e2e/readiness.test.ts': 'readiness, second by second',
  'test/e2e/webhooks.test.ts': 'webhooks, of relays and receivers that are killed, slow and wrong',
  'test/e2e/stopped-while-starting.test.ts': 'signals at each moment of a start',
  'test/e2e/rolling-restart.test.ts': 'a rolling restart under load',
  'test/integration/addresses.test.ts': 'each kind of address that a process listens on',
  'test/integration/idleness.test.ts': 'what a process still holds once its requests are answered',
  'test/integration/lingering.test.ts':
    'connections that are read after their last answer, for as long as that may take',
  'test/integration/lost-access.test.ts':
    'every stream of callers that lose their access, and messages that arrive after that',
  'test/integration/max-connection-age.test.ts': 'connections that are replaced by age',
  'test/integration/pipelining.test.ts': 'requests that clients send ahead, and slowly',
  'test/integration/request-rules.test.ts':
    'each rule of the messages of the contract, with values on both sides of it',
  'test/integration/reloads.test.ts': 'streams that stay open while files are reloaded',
  'test/integration/renewed-certificates.test.ts': 'certificates that are renewed while in use',
  'test/planted-bugs/': 'planted bugs',
  'test/security/cut-conversations.test.ts': 'each pair of requests of a client that leaves at any moment',
  'test/security/core-port-answers.test.ts': 'what nobody sends a core, slowly',
  'test/security/core-port-bounds.test.ts': 'floods of connections and calls',
  'test/security/core-port-shares.test.ts': 'callers that hold all connections of a core',
  'test/security/early-answers.test.ts': 'each answer to a client that still sends, slowly',
  'test/security/hostile-input.test.ts': 'hostile requests at random',
  'test/security/hostile-webhook-receivers.test.ts': 'receivers of webhooks that answer slowly, wrongly or without end',
  'test/security/malformed-frames.test.ts': 'malformed frames, and floods of them',
  'test/security/personal-data.test.ts': 'personal data in the output of each call and command',
  'test/security/terminal.test.ts': 'what a terminal shows of hostile names',
  'test/security/unread-rest-answers.test.ts': 'responses that are not read',
  'test/simulation/mongo-': 'the store contract on a simulated replica set, and its commands beside those of a server',
  'test/simulation/simulation.test.ts': 'lives of the whole service on a simulated machine',
  'test/unit/contact-keys.test.ts': 'the phone numbers of every region',
  'test/unit/core-sessions.test.ts': 'connections that fall silent',
  'test/unit/watched-files.test.ts': 'files that are watched for changes',
  'test/upgrade/': 'databases of the last release',
};

/** Suites that run only where something is installed, or allowed, are declared by functions with such names. */
const NEEDS_MORE = /\bdescribe(?:With\w+|If)\(/;

/** Suites that only `npm run soak` runs, with what the other lanes prove instead. */
export const ONLY_IN_SOAK: Readonly<Record<string, string>> = {
  'test/soak/isolation-in-time.test.ts': 'which data a response is about; only a quiet machine measures its time',
  'test/e2e/alerts.test.ts': 'each rule of Prometheus, on series that are written down',
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

/** The suites of `npm run test:fast`, for use while typing: those of `npm test` about files, ports and the public API, in less than a minute. */
export const FAST: readonly string[] = QUICK.filter(
  (suite) =>
    /^test\/(?:unit|contract|integration|e2e\/http)\//.test(suite) &&
    !SLOW.some((name) => suite === `test/${name}.test.ts`),
);

/** The suites that only `npm run test:all` runs. */
export const LEFT_OUT: readonly string[] = SUITES.filter((suite) => !QUICK.includes(suite));

/** The suites of these that run in separate groups, one after the other once all others have ended. */
export const APART: Readonly<Record<string, { readonly workers: number; readonly suites: readonly string[] }>> = {
  // They wait for deadlines of calls to servers in their own process, and of processes replaced under load. Two of
  // them run with a processor each. Two count the memory or the processor time of a process, so they share none.
  'by twos': {
    workers: 2,
    suites: [
      'test/simulation/mongo-contract.test.ts',
      'test/security/core-port-bounds.test.ts',
      'test/e2e/reused-port.test.ts',
      'test/integration/idleness.test.ts',
    ],
  },
  // It loads the whole machine, and would otherwise measure the load of others.
  alone: { workers: 1, suites: ['test/crash/overload.test.ts'] },
};

const isApart = (suite: string) => Object.values(APART).some(({ suites }) => suites.includes(suite));

/** The suites of these that run concurrently. */
export const TOGETHER: readonly string[] = LEFT_OUT.filter((suite) => !isApart(suite));

/** The suites of the examples and of the clients, except one that waits for deadlines. They test a running service. */
export const CONFORMANCE = 'sdk/test/conformance.test.ts';
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
