import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'src/store/sqlite/lead-changes.ts';
const MONGO = 'src/store/mongo/lead-changes.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const ON_MONGO = 'test/contract/mongo-store.test.ts';
const OVER_RPC = 'test/integration/change-feed.test.ts';
const OLDER_STATE = 'acknowledging an older state does not hide a newer one';
const ONE_WRITE = 'a changed lead is never visible without its entry in the feed';
const ANY_CLOCK = 'a lead is in the feed whatever the clock of its writer, even before entries already read';
const RESENT = 'all leads of a studio can be resent, in parts, and earlier acknowledgements do not count';

const HIDDEN = '1500 unreadable leads before, between and after others hide none of them';

/** Faults of the change feed on SQLite, and of what both stores share. */
export const FEED_BUGS: readonly PlantedBug[] = [
  {
    name: 'an acknowledgement of an older revision removes a newer one',
    suite: ON_SQLITE,
    caughtBy: OLDER_STATE,
    patches: [{ file: SQLITE, text: 'AND revision = ? AND changed_since', put: 'AND ? >= 0 AND changed_since' }],
  },
  {
    name: 'a stage change is entered in the change feed by a second write',
    suite: ON_SQLITE,
    caughtBy: ONE_WRITE,
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        text: `rule_region = ?4,\n      \${changeMark('stage-changed', '?2')}`,
        put: 'rule_region = ?4',
      },
      {
        file: 'src/store/sqlite/leads.ts',
        find: 'changeLeadStage: stageChanger(commits, leads)',
        put: `changeLeadStage: async (change) => {
          const outcome = await stageChanger(commits, leads)(change);
          const mark = "UPDATE leads SET " + changeMark('stage-changed', '?1') + " WHERE id = unhex(?2, '-')";
          const markLater = () => database.prepare(mark).run(change.now.getTime(), change.leadId);
          setTimeout(() => commits.write(markLater).catch(() => {}), 500);
          return outcome;
        }`,
      },
    ],
  },
  {
    name: 'the change feed omits entries before those already read',
    suite: ON_SQLITE,
    caughtBy: ANY_CLOCK,
    patches: [
      {
        file: SQLITE,
        find: '(limit) => selectFirst.all(limit)',
        put: `(limit) => {
          const later = selectFirst.all(limit).filter((row) => Number(row.at(-3)) > toldUpTo);
          toldUpTo = Number(later.at(-1)?.at(-3) ?? toldUpTo);
          return later;
        }`,
      },
      {
        file: SQLITE,
        find: 'const studios = studioNumbers(database);',
        put: 'const studios = studioNumbers(database); let toldUpTo = 0;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'unreadable leads at the head of the change feed hide all behind them',
    suite: ON_SQLITE,
    caughtBy: HIDDEN,
    patches: [{ file: 'src/store/first-readable.ts', find: 'position = last;', put: 'return records;' }],
  },
  {
    name: 'the change feed never returns to unreadable leads that it has skipped',
    suite: 'test/unit/first-readable.test.ts',
    caughtBy: 'are read from the start again later, in case that a skipped one has become readable',
    patches: [{ file: 'src/store/first-readable.ts', find: 'this.#start.until <= this.#now()', put: 'false' }],
  },
  {
    name: 'a poll of the change feed skips any number of unreadable leads at once',
    suite: 'test/unit/first-readable.test.ts',
    caughtBy: 'are found behind 50000 unreadable ones, in calls of a bounded cost',
    patches: [{ file: 'src/store/first-readable.ts', find: 'reads < MAX_READS', put: 'reads < 1e9' }],
    inSoak: true,
  },
  {
    name: 'a revision that overflows fails a whole resend',
    suite: ON_SQLITE,
    caughtBy: 'it can be resent with all others, and change: a mark whose revision is 9223372036854775807n',
    patches: [{ file: SQLITE, text: ', revision + 1, 0)', put: ', revision + 1, revision + 1)' }],
    inSoak: true,
  },
  {
    name: 'a resent lead keeps its revision',
    suite: ON_SQLITE,
    caughtBy: RESENT,
    patches: [
      {
        file: SQLITE,
        text: `SET \${changeMark('resent', '?1')} WHERE`,
        put: `SET \${changeMark('resent', '?1').replace(/max\\(iif.*, \\?1\\)/, 'revision')} WHERE`,
      },
    ],
  },
  {
    name: 'a watch repeats entries that it has already sent',
    suite: OVER_RPC,
    caughtBy: 'over gRPC, returns existing and new changes, each state once',
    patches: [
      {
        file: 'src/usecases/watch-lead-changes.ts',
        find: 'revisions?.get(keyOfChanged(change)) !== change.revision',
        put: 'change.revision >= 0',
      },
    ],
  },
  {
    name: 'a waiting pull does not end when the core stops',
    suite: OVER_RPC,
    caughtBy: 'returns no changes, and no error, when the core stops',
    patches: [
      {
        file: 'src/rpc/lead-changes.ts',
        find: 'AbortSignal.any([context.signal, ending, callerOf(context).withdrawn, context.values.get(connectionDraining)])',
        put: 'context.signal',
      },
    ],
    inSoak: true,
  },
];

/** The same on MongoDB. */
export const MONGO_FEED_BUGS: readonly PlantedBug[] = [
  {
    name: 'on MongoDB, an acknowledgement of an older revision removes a newer one',
    suite: ON_MONGO,
    caughtBy: OLDER_STATE,
    patches: [
      {
        file: MONGO,
        find: "{ $$$BEFORE, 'changes.revision': $REVISION, 'changes.since': $SINCE }",
        put: "{ $$$BEFORE, 'changes.since': $SINCE }",
      },
    ],
  },
  {
    name: 'on MongoDB, a stage change is entered in the change feed by a second write',
    suite: ON_MONGO,
    caughtBy: ONE_WRITE,
    patches: [
      {
        file: 'src/store/mongo/leads.ts',
        find: '{ ...mark, $set: { ...mark.$set, ...change } }',
        put: '{ $set: change }',
      },
      {
        file: 'src/store/mongo/leads.ts',
        find: 'const change = { stage, updatedAt, $$$CLAIMS };',
        put: 'const change = { stage, updatedAt, $$$CLAIMS }; setTimeout(() => leads.updateOne({ studioId, _id }, mark as any).catch(() => {}), 1000);',
      },
    ],
  },
  {
    name: 'on MongoDB, a malformed mark is extended in place of replaced',
    suite: ON_MONGO,
    caughtBy: 'it can be resent with all others, and change: a mark whose changes is null',
    patches: [{ file: MONGO, find: 'if (!isMark(changes)) $REPLACE', put: '' }],
  },
  {
    name: 'on MongoDB, a lead that cannot be marked fails a whole resend',
    suite: ON_MONGO,
    caughtBy: 'a lead whose document is full is reported by a resend, which marks all others',
    patches: [{ file: MONGO, find: 'if (refusals.length === 0 || $OTHERS) throw error;', put: 'throw error;' }],
    inSoak: true,
  },
  {
    name: 'on MongoDB, the change feed goes on behind a time and not behind a lead',
    suite: ON_MONGO,
    caughtBy: HIDDEN,
    patches: [
      {
        file: 'src/store/mongo/changes-by-time.ts',
        find: "$or: [{ 'changes.since': { $gt: position.since } }, { _id: { $gt: position._id } }]",
        put: '_id: { $exists: true }',
      },
    ],
    inSoak: true,
  },
  {
    name: 'on MongoDB, the audit of a studio has the events of some keys only',
    suite: ON_MONGO,
    caughtBy: 'of more events than are listed, those listed are the newest, newest first, whatever keys they are of',
    patches: [{ file: 'src/store/mongo/audit.ts', find: 'keys.length < KEYS_PER_READ', put: 'keys.length > 0' }],
  },
  {
    name: 'on MongoDB, changes above the ceiling are never read',
    suite: 'test/unit/changes-by-time.test.ts',
    caughtBy: 'finds changes that sort before or after all that was found',
    patches: [
      {
        file: 'src/store/mongo/changes-by-time.ts',
        find: 'found.length === count || ceiling === ACKNOWLEDGED',
        put: 'found.length >= 0 || ceiling === ACKNOWLEDGED',
      },
    ],
  },
];
