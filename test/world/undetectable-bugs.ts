/**
 * Planted bugs that no simulation can find, by what the world lacks. When something is added to the world, remove its
 * bugs from this list.
 */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  'exports to a file': [
    'a resumed export file keeps an incomplete record',
    'CSV does not escape a formula after an apostrophe',
  ],
  'impostors behind TLS': ['a gateway sends its token to a core with an invalid certificate'],
  'other processes that lock the database file': ['waiting for the lock of another process blocks the core'],
  'more unreadable leads than a poll reads, and odd marks of changes': [
    'unreadable leads at the head of the change feed hide all behind them',
  ],
  'several servers of MongoDB, and a failover': ['a write is acknowledged by one server only'],
  'a database of the previous release': ['claims by the rule of release 1.0 are taken for current ones'],
  'so many connections with pending requests that their total exceeds the limit': [
    'the number of queued requests is unbounded',
  ],
  'a clock that goes backwards between two changes of a lead': ['updatedAt decreases when the clock goes back'],
  'time without disturbances for unauthenticated connections: exercised, but never detected': [
    'the number of unauthenticated connections is unbounded',
  ],
  'a core that writes claims by a former region': ['a lead does not claim the digits of its contact'],
};

/** What the world lacks, by the name of the bug that needs it. */
export const UNDETECTABLE_BUGS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(LACKS).flatMap(([what, names]) => names.map((name) => [name, what])),
);
