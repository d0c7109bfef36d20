import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'src/store/sqlite/deliveries.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const ON_MONGO = 'test/contract/mongo-store.test.ts';
const OLDER_STATE = 'acknowledging or setting aside an older state hides no newer one';
const ONE_WRITE = 'a changed lead is never visible without its entry in the feed';

const HIDDEN = 'many unreadable leads before, between and after others hide none of them';

/** Faults of the change feed on SQLite, and of code that both stores share. */
export const FEED_BUGS: readonly PlantedBug[] = [
  {
    name: 'on SQLite, a lead is delivered with the kinds of an older state',
    suite: ON_SQLITE,
    caughtBy: 'a change that a poll does not reach behind a backlog still arrives with its kind',
    patches: [{ file: SQLITE, text: 'AND changed_since IS NULL', put: '' }],
  },
  {
    name: 'on MongoDB, an acknowledged change is delivered again',
    suite: ON_MONGO,
    caughtBy: 'a revision is never sent with two contents while another core writes deliveries',
    patches: [{ file: 'src/store/mongo/deliveries.ts', find: 'const KEPT_MS = 60_000', put: 'const KEPT_MS = -1e12' }],
  },
  {
    name: 'unreadable leads at the head of the change feed hide all others',
    suite: ON_SQLITE,
    caughtBy: HIDDEN,
    patches: [{ file: 'src/store/pages.ts', find: 'position = last;', put: 'return records;' }],
  },
  {
    name: 'on MongoDB, a stage change is entered in the change feed by a second write',
    suite: ON_MONGO,
    caughtBy: ONE_WRITE,
    patches: [
      { file: 'src/store/mongo/lead-documents.ts', find: 'changes: pending', put: '...{}' },
      {
        file: 'src/store/mongo/leads.ts',
        find: 'taken = write.keys?.contactKeys ?? [];',
        put: 'taken = write.keys?.contactKeys ?? []; const second = { $set: { changes: write.pending } } as any; setTimeout(() => leads.updateOne({ studioId, _id }, second).catch(() => {}), 1000);',
      },
    ],
  },
  {
    name: 'an acknowledgement of an older revision removes a newer one',
    suite: ON_SQLITE,
    caughtBy: OLDER_STATE,
    patches: [
      {
        file: SQLITE,
        find: 'acknowledge.run({ consumer, studioId, leadId, revision })',
        put: 'acknowledge.run({ consumer, studioId, leadId, revision: 2 ** 52 })',
      },
    ],
  },
  {
    name: 'a feed call fails if FerretDB ends it because of concurrent calls',
    suite: 'test/contract/mongo-refusals.test.ts',
    caughtBy: 'resendLeads succeeds after the server aborts one of its writes because of a conflict',
    patches: [{ file: 'src/store/mongo/mongo-store.ts', find: 'retryingCall(connection)', put: 'connection.call' }],
  },
  {
    name: 'only the last of several restores counts',
    suite: ON_SQLITE,
    caughtBy: 'each restore gets a higher epoch, even if a clock was set back, and the earliest time',
    patches: [
      {
        file: 'src/domain/database-epoch.ts',
        find: '...(before ? [before.getTime()] : [])',
        put: '...(begun.length === 0 && before ? [before.getTime()] : [])',
      },
    ],
  },
  {
    name: 'after a restore, leads get revisions that a fast clock had given before',
    suite: 'test/e2e/cli.test.ts',
    caughtBy: 'after a recorded restore, consumers get changes since the backup or the given time',
    patches: [
      {
        file: 'operator/commands/change-commands.ts',
        find: 'clock().getTime() + MAX_AHEAD_BEFORE_RESTORE_MS',
        put: 'clock().getTime()',
      },
    ],
  },
];
