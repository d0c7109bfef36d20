import type { PlantedBug } from './planted-bug.ts';

const CLAIMS = 'src/domain/claims.ts';
const CONTACT = 'src/domain/contact.ts';
const OF_CONTACTS = 'test/unit/contact.test.ts';

/** Faults that the first version had, and that no other list has. */
export const VERSION_ONE_BUGS: readonly PlantedBug[] = [
  {
    name: 'a lead claims its contact by the region of today alone',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy:
      'the same text never gets a second open lead when the region changes from DE to null: before, during and after the renewal',
    patches: [
      { file: CLAIMS, find: '[contactRule, ...formerRules]', put: '[contactRule]' },
      { file: CLAIMS, find: 'if (!isRegionIndependent(contact)) keys.push(textKey(contact));', put: '' },
    ],
    inSoak: true,
  },
  {
    name: 'of a number with letters only the digits are compared',
    suite: OF_CONTACTS,
    caughtBy: '0800 REIFEN in DE is 0800reifen',
    patches: [
      { file: CONTACT, find: '!isSpelled(ascii, number.nationalNumber)', put: 'ascii' },
      {
        file: CONTACT,
        find: 'return /\\p{L}/u.test(typed) ? $LETTERS : digitsOf(international);',
        put: 'return digitsOf(international);',
      },
    ],
  },
  {
    name: 'letters that have one capital are one letter',
    suite: OF_CONTACTS,
    caughtBy: 'when e-mail addresses differ in letter case only: İ@example.org, i@example.org',
    patches: [
      {
        file: CONTACT,
        find: "type === 'email' ? lowerCase(value) : phoneForm(value, region)",
        put: "type === 'email' ? value.toUpperCase().toLowerCase() : phoneForm(value, region)",
      },
    ],
  },
  {
    name: 'a failed commit is answered as done',
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
    name: 'a command that the driver never ends is taken for done',
    suite: 'test/unit/bounded-collection.test.ts',
    caughtBy: 'a find that the driver never finishes is given up and reported as failed',
    patches: [
      {
        file: 'src/store/mongo/bounded-collection.ts',
        find: 'Promise.race([work(), timeout])',
        put: 'Promise.race([work(), timeout.catch(() => undefined)])',
      },
    ],
    inSoak: true,
  },
];

/** Each fault of the first version, by the names of the bugs that plant it back. */
export const VERSION_ONE_FAULTS: Readonly<Record<string, readonly string[]>> = {
  'another region gives the same text a second open lead': [
    'a lead claims its contact by the region of today alone',
    'a lead does not claim the text of its contact',
    'former regions are not held to',
    'a region that changes once more lets the ones before be forgotten',
    'claims are never made anew by a core that runs',
  ],
  'what is not the same contact is taken for it': [
    'of a number with letters only the digits are compared',
    'letters that have one capital are one letter',
  ],
  'a packet of pipelined requests holds the gateway': [
    'a connection is read on however many of its requests wait',
    'a connection full of requests comes before all others',
    'any number of requests wait',
  ],
  'answers that nobody reads are kept': [
    'who reads nothing is never closed',
    'what the system keeps of an answer counts as taken',
    'one key leaves unread what it likes',
    'all keys together leave unread what they like',
    'answers are kept for as long as nobody reads them',
  ],
  'a full disk is not told, or what it did not take is acknowledged': [
    'a store to which nothing can be written says that it is well',
    'a write is answered before its transaction is committed',
    'a failed commit is answered as done',
  ],
  'who was told to wait is let in earlier': [
    'in memory, who comes when the window is over is let in before the time that was told',
    'in Redis, who comes when the window is over is let in before the time that was told',
  ],
  'the time to stop begins before the drain': ['the deadline of a stop begins before its drain'],
  'the address decides about concerns': ['the address decides about concerns'],
  'what the driver loses is lost, or there twice': [
    'an insert whose reply is lost is repeated under another id',
    'an insert that fails as a whole is answered as created',
    'a command that the driver never ends is taken for done',
  ],
};
