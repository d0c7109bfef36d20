import type { PlantedBug } from './planted-bug.ts';

const STORE = 'test/contract/sqlite-store.test.ts';
const LOCKS = 'test/contract/sqlite-locks.test.ts';
const FILES = 'test/contract/sqlite-files.test.ts';
const SQLITE_STORE = 'src/store/sqlite/sqlite-store.ts';
const LEADS = 'src/store/sqlite/leads.ts';
const CREDENTIALS = 'src/store/sqlite/credentials.ts';
const CLAIMS = 'src/store/sqlite/leads.ts';
const SCHEMA = 'src/store/sqlite/schema.ts';
const MIGRATE = 'src/store/sqlite/migrate.ts';
const UPGRADE = 'test/upgrade/upgrade.test.ts';

/** Faults of the store on SQLite, of what both stores share, of the use cases and of the gateway. */
export const SQLITE_BUGS: readonly PlantedBug[] = [
  {
    name: 'the contact is checked before the idempotency key',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'the same key with the same data is a replay of the first lead',
    patches: [
      {
        file: LEADS,
        find: 'const earlier = findByKey(studioId, idempotencyKey);',
        put: `if (holder !== undefined) return { kind: 'already-open', leadId: holder };
              const earlier = findByKey(studioId, idempotencyKey);`,
      },
    ],
  },
  {
    name: 'the index of idempotency keys is not unique',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'one key with 50 different bodies creates one lead; the rest are conflicts',
    patches: [
      {
        file: SCHEMA,
        text: 'UNIQUE (studio_number, idempotency_key)',
        put: 'CHECK (true)',
      },
      { file: LEADS, text: 'ON CONFLICT (studio_number, idempotency_key) DO NOTHING', put: '' },
    ],
  },
  {
    name: 'several open leads may claim one contact',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'another key for a contact with an open lead names that lead, and nothing is written',
    patches: [
      { file: CLAIMS, text: 'INSERT INTO contact_claims', put: 'INSERT OR IGNORE INTO contact_claims' },
      {
        file: CLAIMS,
        find: 'if (stage !== null && isOpen(stage) && $RIGHTLY) return $HOLDER;',
        put: 'if (number) continue;',
      },
    ],
  },
  {
    name: 'a commit into a file that was removed is acknowledged until the next check',
    suite: FILES,
    caughtBy: 'once its files have gone, createLead is not acknowledged as the first write',
    patches: [
      {
        file: SQLITE_STORE,
        find: 'const committed = () => { checkFiles(); checkpoints.committed(); };',
        put: 'const committed = () => checkpoints.committed();',
      },
    ],
  },
  {
    name: 'waiting for the lock of another process blocks the core',
    suite: LOCKS,
    caughtBy: 'by BEGIN IMMEDIATE, every write waits, and none blocks what is read',
    patches: [
      {
        file: SQLITE_STORE,
        find: "database.exec('PRAGMA busy_timeout = 0');",
        put: '',
      },
    ],
  },
  {
    name: 'a write succeeds before its transaction is committed',
    suite: STORE,
    caughtBy: 'all fail, and none is stored, when the commit fails',
    patches: [
      {
        file: 'src/store/sqlite/group-commit.ts',
        find: 'return () => resolve(result);',
        put: 'resolve(result); return () => {};',
      },
    ],
  },
  {
    name: 'a failed write fails its whole group commit',
    suite: STORE,
    caughtBy: 'roll back all of a write that fails half-way, and nothing else',
    patches: [
      {
        file: 'src/store/sqlite/group-commit.ts',
        find: 'return writes.map((write) => this.#performAlone(write));',
        put: 'throw error;',
      },
    ],
  },
  {
    name: 'the gateway refuses a request without checking its cached key at the core',
    suite: 'test/e2e/http/check-order.test.ts',
    caughtBy:
      'a request with two faults is refused for the first in the order of checks, and nothing is written: revoked key, invalid body',
    patches: [
      {
        file: 'gateway/admission/admission.ts',
        find: 'await lookUps.find(senderToCheck(state), true).catch((refusal) => refusal)',
        put: 'senderToCheck(state)',
      },
    ],
  },
  {
    name: 'a remembered credential outlives the change of another process',
    suite: STORE,
    caughtBy: 'a credential reflects its studio and issuer immediately, in every process',
    patches: [{ file: CREDENTIALS, find: 'if (version !== current) forgetCredentials();', put: '' }],
  },
  {
    name: 'the fingerprint omits the note',
    isSeenOutside: true,
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'is refused with 409, and nothing is written or changed: another note',
    patches: [
      {
        file: 'src/domain/fingerprint.ts',
        find: '[displayName, contact.type, contact.value, sourceId, note, ...added]',
        put: '[displayName, contact.type, contact.value, sourceId, ...added]',
      },
    ],
  },
  {
    name: 'a lead does not claim the digits of its contact',
    suite: STORE,
    caughtBy: 'a late call with claims of the former region creates no second lead for the same text',
    patches: [
      {
        file: 'src/domain/phone-number.ts',
        find: 'return [dialled.isAfterKl && IS_NORDIC.test(e164) ? e164 : e164 + suffix, ofDialled];',
        put: 'return [e164 + suffix];',
      },
    ],
  },
  {
    name: 'a file in which an earlier release has begun something is opened',
    suite: UPGRADE,
    caughtBy: 'in which a release before 1.2 has begun something is refused with what to do, and not changed',
    patches: [{ file: MIGRATE, find: 'if (isOfBefore12(database)) throw ofEarlierRelease($FILE);', put: '' }],
  },
  {
    name: 'a request is admitted when the quota cannot be counted',
    suite: 'test/e2e/http/quota.test.ts',
    caughtBy: 'every operation is refused with 503 and a time to wait, and nothing is written',
    patches: [
      {
        file: 'gateway/admission/count-quota.ts',
        find: "if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });",
        put: 'if (error instanceof QuotaUnavailable) return { admitted: true, limit: 1, remaining: 1, resetSeconds: 1, windows: [] };',
      },
    ],
  },
  {
    name: 'a commit does not wait for the disk',
    suite: 'test/crash/power-cuts.test.ts',
    caughtBy: 'at any moment',
    patches: [
      {
        file: 'src/store/sqlite/open-database.ts',
        text: 'PRAGMA synchronous = FULL',
        put: 'PRAGMA synchronous = NORMAL',
      },
    ],
  },
  {
    name: 'a public lead is returned whose name nobody could have given',
    suite: STORE,
    caughtBy: 'a lead: only requests for it fail, each list that leaves it out says so, and its claims stay',
    patches: [
      { file: 'src/store/checked.ts', find: 'isJsonText(read.displayName, BOUNDS.displayName.max)', put: 'true' },
    ],
  },
];
