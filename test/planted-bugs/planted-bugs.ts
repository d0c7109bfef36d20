import { BATCH_BUGS } from './batch-bugs.ts';
import { CORE_BUGS } from './core-bugs.ts';
import { EDGE_BUGS } from './edge-bugs.ts';
import { ERASURE_BUGS } from './erasure-bugs.ts';
import { FEED_BUGS } from './feed-bugs.ts';
import { LEAD_BUGS } from './lead-bugs.ts';
import { MONGO_BUGS } from './mongo-bugs.ts';
import { OPERATOR_BUGS } from './operator-bugs.ts';
import type { PlantedBug } from './planted-bug.ts';
import { QUOTA_BUGS } from './quota-bugs.ts';
import { SECURITY_BUGS } from './security-bugs.ts';
import { SQLITE_BUGS } from './sqlite-bugs.ts';
import { WEBHOOK_BUGS } from './webhook-bugs.ts';

/** Whether all bugs are planted, as in a soak, or only the first of each list. */
export const ALL = process.env.PLANTED_BUGS === 'all';

/** One list for each kind of fault. */
const KINDS: readonly (readonly PlantedBug[])[] = [
  SQLITE_BUGS,
  MONGO_BUGS,
  OPERATOR_BUGS,
  LEAD_BUGS,
  BATCH_BUGS,
  CORE_BUGS,
  EDGE_BUGS,
  FEED_BUGS,
  ERASURE_BUGS,
  QUOTA_BUGS,
  SECURITY_BUGS,
  WEBHOOK_BUGS,
];

/** All planted bugs. */
export const ALL_BUGS: readonly PlantedBug[] = KINDS.flat();

const names = (bug: Pick<PlantedBug, 'patches'> & Partial<PlantedBug>, pattern: RegExp) =>
  [bug.suite ?? '', ...bug.patches.map(({ file }) => file)].some((file) => pattern.test(file));

/** Returns the database on which a simulation can show the fault. On MongoDB, gateways count in Redis. */
export const findDatabase = (bug: Pick<PlantedBug, 'patches'>): keyof typeof PLANTED_BUGS =>
  names(bug, /mongo|redis|count-quota/) ? 'MongoDB' : 'SQLite';

/** Returns the variant for the suite that sees a deployment only from outside. */
const fromOutside = (bug: PlantedBug): PlantedBug => ({
  ...bug,
  name: `${bug.name}, seen from outside`,
  suite: 'test/verify/sqlite.test.ts',
  caughtBy: 'a deployment of this release keeps every rule that can be checked from outside',
});

const toRun = (ALL ? KINDS : KINDS.map((bugs) => bugs.slice(0, 1))).flatMap((bugs) => [
  ...bugs,
  ...bugs.filter(({ isSeenOutside }) => isSeenOutside).map(fromOutside),
]);

/** The variants to run, by the database of their suites. */
export const PLANTED_BUGS = {
  SQLite: toRun.filter((bug) => !names(bug, /mongo/)),
  MongoDB: toRun.filter((bug) => names(bug, /mongo/)),
} satisfies Record<string, readonly PlantedBug[]>;
