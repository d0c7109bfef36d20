import { BATCH_BUGS } from './batch-bugs.ts';
import { CONNECTION_BUGS } from './connection-bugs.ts';
import { CONTACT_BUGS } from './contact-bugs.ts';
import { CONTRACT_BUGS } from './contract-bugs.ts';
import { CORE_BUGS } from './core-bugs.ts';
import { CRASH_BUGS } from './crash-bugs.ts';
import { EDGE_BUGS } from './edge-bugs.ts';
import { ERASURE_BUGS, MONGO_ERASURE_BUGS } from './erasure-bugs.ts';
import { EXPORT_BUGS } from './export-bugs.ts';
import { FEED_BUGS, MONGO_FEED_BUGS } from './feed-bugs.ts';
import { FIND_BUGS, FIND_MONGO_BUGS } from './find-bugs.ts';
import { GENERATED_CLIENT_BUGS } from './generated-client-bugs.ts';
import { IMPORT_BUGS, MONGO_IMPORT_BUGS } from './import-bugs.ts';
import { MONGO_BUGS } from './mongo-bugs.ts';
import { OPERATOR_BUGS } from './operator-bugs.ts';
import { OUTBOX_BUGS } from './outbox-bugs.ts';
import type { PlantedBug } from './planted-bug.ts';
import { QUOTA_BUGS } from './quota-bugs.ts';
import { SECURITY_BUGS } from './security-bugs.ts';
import { SQLITE_BUGS } from './sqlite-bugs.ts';
import { UNREADABLE_BUGS, UNREADABLE_MONGO_BUGS } from './unreadable-bugs.ts';
import { UPDATE_BUGS, UPDATE_MONGO_BUGS } from './update-bugs.ts';
import { VERSION_ONE_BUGS } from './version-one-bugs.ts';

/** Whether those are run, too, that only a soak runs, and the unchanged product, which the suites themselves run every time. */
export const ALL = process.env.PLANTED_BUGS === 'all';

/** The same variant, run against the conformance suite, which takes long: the first of them each time, all in a soak. */
const fromOutside = (bug: PlantedBug, index: number): PlantedBug => ({
  ...bug,
  ...(index > 0 && { inSoak: true }),
  name: `${bug.name}, seen from outside`,
  suite: 'test/conformance/sqlite.test.ts',
  caughtBy: 'a deployment of this release keeps every rule that can be checked from outside',
});

const ON_SQLITE = [
  SQLITE_BUGS,
  UNREADABLE_BUGS,
  UPDATE_BUGS,
  FIND_BUGS,
  BATCH_BUGS,
  GENERATED_CLIENT_BUGS,
  CONNECTION_BUGS,
  CONTACT_BUGS,
  CONTRACT_BUGS,
  CORE_BUGS,
  CRASH_BUGS,
  EDGE_BUGS,
  FEED_BUGS,
  IMPORT_BUGS,
  ERASURE_BUGS,
  EXPORT_BUGS,
  OPERATOR_BUGS,
  OUTBOX_BUGS,
  QUOTA_BUGS,
  SECURITY_BUGS,
  VERSION_ONE_BUGS,
].flat();

const ON_MONGODB = [
  MONGO_BUGS,
  MONGO_ERASURE_BUGS,
  MONGO_FEED_BUGS,
  MONGO_IMPORT_BUGS,
  FIND_MONGO_BUGS,
  UNREADABLE_MONGO_BUGS,
  UPDATE_MONGO_BUGS,
].flat();

/** Every faulty variant once. */
export const ALL_BUGS: readonly PlantedBug[] = [...ON_SQLITE, ...ON_MONGODB];

/** Returns the database on which the fault shows; Redis is used with MongoDB. */
export const databaseOf = (bug: PlantedBug): keyof typeof PLANTED_BUGS =>
  ON_MONGODB.includes(bug) ||
  [bug.suite, ...bug.patches.map(({ file }) => file)].some((file) => /mongo|redis|store-away/.test(file))
    ? 'MongoDB'
    : 'SQLite';

const selected = (bugs: readonly PlantedBug[]) => bugs.filter(({ inSoak }) => ALL || !inSoak);

/** The variants to run, by database. */
export const PLANTED_BUGS = {
  SQLite: selected([...ON_SQLITE, ...ON_SQLITE.filter(({ isSeenOutside }) => isSeenOutside).map(fromOutside)]),
  MongoDB: selected(ON_MONGODB),
} satisfies Record<string, readonly PlantedBug[]>;

/** The unchanged product, run like a variant: every test must pass. */
export const CONTROL = 'control';
