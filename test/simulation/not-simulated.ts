/** Planted bugs that no life can find, by what the simulated machine lacks. */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  'TLS, and impostors behind it': [
    'a gateway sends its token to a core with an invalid certificate',
    'a gateway keeps the certificates of its start',
  ],
  'exports and backups to a file, terminals, and a standard output that is closed': [
    'a key whose secret is lost stays valid',
    'CSV does not escape a formula after an apostrophe',
    'a backup overwrites a file that was made meanwhile',
    'doctor prints responses of the core unescaped',
  ],
  'restores of a backup, which only lives of hours make, resends of a range of times, and exports with events, which no life makes':
    [
      'an export with events has as many leads in a message as one without',
      'of several restores only the last counts',
      'a backup of a restored database counts as its only one',
      'on SQLite, a resend of a range of times is one of all',
      'leads of a restored database come at revisions that clocks ahead had given before',
    ],
  'other processes that lock the database file, and its modes': [
    'waiting for the lock of another process blocks the core',
    'the database file is readable by every user of the machine',
  ],
  'a database that is damaged': [
    'doctor --records does not read leads',
    'doctor --records reads a broken file as if it were sound',
  ],
  'disks and writes that fail, or lose what was not synced: what a group commit has begun ends in the same event': [
    'a write succeeds before its transaction is committed',
    'a commit does not wait for the disk',
    'a failed write fails its whole group commit',
    'the check of the store succeeds while writes fail',
  ],
  "the thread that moves SQLite's log, which is the machine's own": [
    'the log is never truncated',
    'what an erasure leaves in the log is not told',
  ],
  'more unreadable leads than a poll reads, and odd marks of changes': [
    'unreadable leads at the head of the change feed hide all behind them',
  ],
  'a database of an earlier release': [
    'a file in which an earlier release has begun something is opened',
    'an open lead of release 1.2 refuses another contact',
  ],
  'an address that leads to one member, a lost index on MongoDB, and a driver that never settles a command': [
    'a core reads from a secondary to which its address leads directly',
    'a creation does not rely on the last check of the indexes',
    'a command that the driver never finishes is reported as successful',
  ],
  'callers that hold what they can, or send more than they may: kernel buffers and memory are not simulated': [
    'the number of unauthenticated connections is unbounded',
    'a caller whose calls never end keeps all connections of a core',
    'an unread response of the core is buffered without a time limit',
    'the core accepts a message of any length',
    'the gateway sheds no load',
    'a connection with many requests delays all others',
    'the number of queued requests is unbounded',
    'requests after a response that closes the connection are executed',
    'a request whose body is malformed loses its id and its quota headers',
    'a connection that reads nothing is never closed',
    'the unread bytes of one key are unbounded',
    'one address may have all connections',
    'an address may make the core look up any number of keys',
    'lists wait in the order of their arrival',
  ],
  'the log of requests, which no gateway of a life records': [
    'what a caller takes for the id of a lead is recorded',
    'a request names its lead also once that is erased',
    'a batch that is sent again is another one',
  ],
  'thirty days after the erasure of a studio, which no life lasts': [
    'what is left of an erased lead goes while it waits for a consumer',
    'on MongoDB, what is left of an erased lead goes before it was distributed',
    'what is left of erased leads goes at once',
  ],
  'a thousand events of one record': [
    'a history that is full drops its oldest events',
    'events that another process has stored apart are taken out, whichever they are',
  ],
  'a connection that goes on without its caller: its drain, too, ends calls': [
    'open streams continue after their caller is removed from the file',
  ],
  'a difference in what anybody receives: a lead that two workers send has one key': [
    'a worker takes a lead whose lease another worker holds',
  ],
  'packages, which are built and served': [
    'a package is sent again to who has it',
    'a part of an archive is served',
    'a kept release names a file outside of its folder',
    'pages install packages that were not built',
    'an archive has the time of its build',
    'the record of a wheel has another form of checksums',
    'the README of the package for npm has the name of this repository',
  ],
  'the relay, which resolves names and speaks TLS in threads': [
    'two requests for one lead are in flight',
    'an outage counts for the leads that wait for its end',
    'a window full of leads that an endpoint never takes holds up all others',
    'what a former address of an endpoint answers counts for the present one',
    'one good address among bad ones is enough',
    'only the first secret of an endpoint signs',
    'a lead that a receiver does not take is acknowledged',
  ],
  'comparisons of an outbox with the service, which websites make now and then': [
    'a comparison counts every lead as being there',
    'an outbox of an earlier release cannot compare',
    'a comparison that was killed begins anew',
    'a comparison goes on with the key of another studio',
    'a comparison goes on beside a later one',
    'a comparison reads pages, however few leads are left',
    'a comparison uses the whole quota',
    'a lead that is there is sent again',
    'what waits is told in each pass',
  ],
  'FerretDB, which ends calls because of others': ['a call of the feed that FerretDB ends because of others fails'],
  'a client without a service: what it refuses is never sent': [
    'a client finds no fault in a note that is too long',
    'the error of a mistyped key repeats it',
  ],
};

/** What the machine lacks, by the name of the bug that needs it. */
export const NOT_SIMULATED: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(LACKS).flatMap(([what, names]) => names.map((name) => [name, what])),
);
