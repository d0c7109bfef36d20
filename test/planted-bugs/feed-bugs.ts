import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'src/store/sqlite/change-feed.ts';
const ON_SQLITE = 'test/contract/sqlite-store.test.ts';
const ON_MONGO = 'test/contract/mongo-store.test.ts';
const OVER_RPC = 'test/integration/change-feed.test.ts';
const OLDER_STATE = 'acknowledging an older state does not hide a newer one';
const ONE_WRITE = 'a changed lead is never visible without its entry in the feed';

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
    name: 'unreadable leads at the head of the change feed hide all behind them',
    suite: ON_SQLITE,
    caughtBy: HIDDEN,
    patches: [{ file: 'src/store/pages.ts', find: 'position = last;', put: 'return records;' }],
  },
  {
    name: 'a watch repeats entries that it has already sent',
    suite: OVER_RPC,
    caughtBy: 'returns existing and new changes, each state once',
    patches: [
      {
        file: 'src/usecases/change-feed.ts',
        find: 'revisions?.get(keyOfChanged(change)) !== change.revision',
        put: 'change.revision >= 0',
      },
    ],
  },
  {
    name: 'on MongoDB, a stage change is entered in the change feed by a second write',
    suite: ON_MONGO,
    caughtBy: ONE_WRITE,
    patches: [
      { file: 'src/store/mongo/leads.ts', find: 'changes: mark', put: '...{}' },
      {
        file: 'src/store/mongo/leads.ts',
        find: 'claimed = write.claims?.contactKeys ?? [];',
        put: 'claimed = write.claims?.contactKeys ?? []; const second = { $set: { changes: write.mark } } as any; setTimeout(() => leads.updateOne({ studioId, _id }, second).catch(() => {}), 1000);',
      },
    ],
  },
];
