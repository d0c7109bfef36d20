/**
 * Planted bugs that no simulation can find, by what the world lacks. When something is added to the world, remove its
 * bugs from this list.
 */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  'a process that logs to a terminal': ['the log on a terminal is printed unescaped'],
  'exports to a file': [
    'CSV does not escape a formula with a full-width sign',
    'a line break inside quotes ends a CSV record',
    'a resumed export file keeps an incomplete record',
    'CSV does not escape a formula after an apostrophe',
  ],
  'so many leads that an export lasts as long as a shutdown': ['an export ends without an error when its core stops'],
  'more leads in a studio than fit in a message of an export': ['a resumed export skips the rest of its studio'],
  'checks of the log': ['a cancelled export is not logged', 'the reason for not being ready is logged only once'],
  'counts of the reads of the store, and of the fields read': [
    'an export reads all leads before it sends the first',
    'each health call checks the store',
    'reads of leads fetch their history',
  ],
  'impostors behind TLS': [
    'a gateway sends its token to a core with an invalid certificate',
    'a gateway sends its password to a Redis with an invalid certificate',
  ],
  'a server that comes back without an index': ['a check of the indexes outlives the connection'],
  'a Redis Cluster': ['a Redis Cluster command whose reply is lost is sent again'],
  'other processes that lock the database file': [
    'waiting for the lock of another process blocks the core',
    'a write is refused as soon as it meets the lock of another process',
    'any number of writes wait for the lock of another process',
    'closing the store drops the writes that wait for a lock',
    'a read fails while another process recovers the log',
  ],
  'more unreadable leads than a poll reads, and odd marks of changes': [
    'unreadable leads at the head of the change feed hide all behind them',
    'the change feed never returns to unreadable leads that it has skipped',
    'a poll of the change feed skips any number of unreadable leads at once',
    'a revision that overflows fails a whole resend',
    'on MongoDB, a malformed mark is extended in place of replaced',
    'on MongoDB, a lead that cannot be marked fails a whole resend',
    'on MongoDB, the change feed goes on behind a time and not behind a lead',
  ],
  'a studio with more keys than a page or an audit has': [
    'on MongoDB, the audit of a studio has the events of some keys only',
  ],
  'direct writes to Redis': ['a list in place of a counter is not replaced'],
  'a restart with another quota': ['a gateway with a higher limit admits a refused key'],
  'several servers of MongoDB, and a failover': [
    'a write is acknowledged by one server only',
    'reads return data that a failover can roll back',
  ],
  'a database of the previous release': [
    'a file of an earlier schema is opened',
    'a renewal of claims that release 1.1 has begun continues',
    'the regions of a renewal that release 1.1 has begun are lost',
    'claims by the rule of release 1.0 are taken for current ones',
    'on MongoDB, a renewal of claims that release 1.1 has begun continues',
    'a former region that cannot be read is forgotten',
  ],
  'a value that only another fault writes': ['an unknown word is sent as undefined'],
  'a studio whose document has its maximum size': ['a studio without room for an event cannot be suspended'],
  'so many connections with pending requests that their total exceeds the limit': [
    'the number of queued requests is unbounded',
  ],
  'thousands of callers that disconnect in one simulation': ['closed connections stay in memory'],
  'a clock that goes backwards between two changes of a lead': ['updatedAt decreases when the clock goes back'],
  'time without disturbances for unauthenticated connections: exercised, but never detected': [
    'a connection stays open after an unauthenticated call',
    'the number of unauthenticated connections is unbounded',
  ],
  'a core that writes claims by a former region': ['a lead does not claim the digits of its contact'],
  'a studio with a thousand members': [
    'a studio may have one member and one source above the bound',
    'the bound of members and sources is checked before the write',
  ],
};

/** What the world lacks, by the name of the bug that needs it. */
export const UNDETECTABLE_BUGS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(LACKS).flatMap(([what, names]) => names.map((name) => [name, what])),
);
