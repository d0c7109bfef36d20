import type { PlantedBug } from './planted-bug.ts';

/** Faults of the first version that no other list has. */
export const VERSION_ONE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a failed commit is reported as successful',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'all fail, and none is stored, when the commit fails',
    patches: [
      {
        file: 'src/store/sqlite/group-commit.ts',
        find: "this.#database.exec('COMMIT');",
        put: "try { this.#database.exec('COMMIT'); } catch { if (this.#database.isTransaction) this.#database.exec('ROLLBACK'); }",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a command that the driver never finishes is reported as successful',
    suite: 'test/unit/bounded-collection.test.ts',
    caughtBy: 'a find that the driver never finishes fails in time and is reported as failed',
    patches: [
      {
        file: 'src/store/mongo/bounded-collection.ts',
        find: 'Promise.race([$COMMAND, timeout])',
        put: 'Promise.race([$COMMAND, timeout.catch(() => undefined)])',
      },
    ],
    inSoak: true,
  },
];

/** The faults of the first version, each with the names of the bugs that plant it. */
export const VERSION_ONE_FAULTS: Readonly<Record<string, readonly string[]>> = {
  'a changed region allows a second open lead for the same text': ['a lead does not claim the digits of its contact'],
  'different contacts are treated as equal': [
    'letters never spell a part of a number',
    'email addresses are compared in upper case',
  ],
  'one packet of pipelined requests blocks the gateway': [
    'a connection with too many queued requests is still read',
    'a connection with many requests delays all others',
    'the number of queued requests is unbounded',
  ],
  'unread responses are unbounded': [
    'a connection that reads nothing is never closed',
    'bytes in the send buffer of the system count as read',
    'the unread bytes of one key are unbounded',
    'the unread bytes of all keys are unbounded',
    'an unread response of the core is buffered without a time limit',
  ],
  'a full disk is not reported, or writes that it refused are acknowledged': [
    'the check of the store succeeds while writes fail',
    'a write succeeds before its transaction is committed',
    'a failed commit is reported as successful',
  ],
  'a refused key is admitted before the announced time': [
    'in memory, a refused key is admitted before the announced time',
    'in Redis, a refused key is admitted before the announced time',
  ],
  'the deadline of a stop includes its drain': ['the deadline of a stop includes its drain'],
  'the connection string overrides the read and write concerns': [
    'the connection string overrides the read and write concerns',
  ],
  'what the driver loses is lost, or written twice': [
    'an insert whose reply is lost is retried with another id',
    'an insert that fails as a whole is reported as created',
    'a command that the driver never finishes is reported as successful',
  ],
};
