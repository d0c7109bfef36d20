/** Planted bugs that no life can find, by what the simulated machine lacks. */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  'TLS, and impostors behind it': ['a gateway sends its token to a core with an invalid certificate'],
  'exports and backups to a file, terminals, and a standard output that is closed': [
    'a key whose secret is lost stays valid',
    'CSV does not escape a formula after an apostrophe',
    'doctor prints responses of the core unescaped',
  ],
  'restores of a backup, which only lives of hours make, resends of a range of times, and exports with events, which no life makes':
    [
      'of several restores only the last counts',
      'leads of a restored database come at revisions that clocks ahead had given before',
    ],
  'other processes that lock the database file, and its modes': [
    'waiting for the lock of another process blocks the core',
  ],
  'a database that is damaged': ['doctor --records reads a broken file as if it were sound'],
  'disks and writes that fail, or lose what was not synced: what a group commit has begun ends in the same event': [
    'a write succeeds before its transaction is committed',
    'a commit does not wait for the disk',
    'a failed write fails its whole group commit',
  ],
  "the thread that moves SQLite's log, which is the machine's own": ['the log is never truncated'],
  'more unreadable leads than a poll reads, and odd marks of changes': [
    'unreadable leads at the head of the change feed hide all behind them',
  ],
  'a database of an earlier release': [
    'a file in which an earlier release has begun something is opened',
    'an open lead of release 1.2 refuses another contact',
  ],
  'an address that leads to one member, a lost index on MongoDB, and a driver that never settles a command': [
    'a creation does not rely on the last check of the indexes',
  ],
  'callers that hold what they can, or send more than they may: kernel buffers and memory are not simulated': [
    'the number of queued requests is unbounded',
    'requests after a response that closes the connection are executed',
    'a request whose body is malformed loses its id and its quota headers',
    'an address may make the core look up any number of keys',
  ],
  'a thousand events of one record': ['a history that is full drops its oldest events'],
  'packages, which are built and served': ['a kept release names a file outside of its folder'],
  'the relay, which resolves names and speaks TLS in threads': [
    'two requests for one lead are in flight',
    'a window full of leads that an endpoint never takes holds up all others',
    'one good address among bad ones is enough',
    'a lead that a receiver does not take is acknowledged',
  ],
  'FerretDB, which ends calls because of others': ['a call of the feed that FerretDB ends because of others fails'],
  'a client without a service: what it refuses is never sent': ['the error of a mistyped key repeats it'],
};

/** What the machine lacks, by the name of the bug that needs it. */
export const NOT_SIMULATED: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(LACKS).flatMap(([what, names]) => names.map((name) => [name, what])),
);
