import type { PlantedBug } from './planted-bug.ts';

const STORE = 'test/contract/sqlite-store.test.ts';
const LOCKS = 'test/contract/sqlite-locks.test.ts';
const FILES = 'test/contract/sqlite-files.test.ts';
const SQLITE_STORE = 'src/store/sqlite/sqlite-store.ts';
const LEADS = 'src/store/sqlite/leads.ts';
const CREDENTIALS = 'src/store/sqlite/credentials.ts';
const SCHEMA = 'src/store/sqlite/schema.ts';
const MIGRATE = 'src/store/sqlite/migrate.ts';
const UPGRADE = 'test/upgrade/upgrade.test.ts';

/** Faults of the store on SQLite, of code that both stores share, of the use cases and of the gateway. */
export const SQLITE_BUGS: readonly PlantedBug[] = [
  {
    name: 'the contact is checked before the idempotency key',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'a repetition with the same key and data returns the first lead',
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
    name: 'several open leads may hold one contact',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: "another key for a contact with an open lead gets that lead's id, and nothing is written",
    patches: [
      { file: LEADS, text: 'INSERT INTO contact_claims', put: 'INSERT OR IGNORE INTO contact_claims' },
      {
        file: LEADS,
        find: 'if (stage !== null && isOpen(stage) && $RIGHTLY) return $HOLDER;',
        put: 'if (number) continue;',
      },
    ],
  },
  {
    name: 'a commit into a file that was removed is acknowledged until the next check',
    suite: FILES,
    caughtBy: 'createLead is not acknowledged as the first write after its files are gone',
    patches: [
      {
        file: SQLITE_STORE,
        find: 'const committed = () => { checkFiles(); checkpoints.committed(); };',
        put: 'const committed = () => checkpoints.committed();',
      },
    ],
  },
  {
    name: "waiting for another process's lock blocks the core",
    suite: LOCKS,
    caughtBy: 'a write lock by BEGIN IMMEDIATE makes every write wait and blocks no read',
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
    caughtBy: 'all writes of a transaction fail and none is stored when its commit fails',
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
    caughtBy: 'a write that fails halfway is rolled back alone within its shared transaction',
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
    caughtBy: 'a request with two faults is refused for the first in order, writing nothing: revoked key, invalid body',
    patches: [
      {
        file: 'gateway/admission/admission.ts',
        find: 'await lookUps.find(senderToCheck(state), true).catch((refusal) => refusal)',
        put: 'senderToCheck(state)',
      },
    ],
  },
  {
    name: 'a cached credential outlives a change by another process',
    suite: STORE,
    caughtBy: 'a credential reflects its studio and issuer immediately, in every process',
    patches: [{ file: CREDENTIALS, find: 'if (version !== current) forgetCredentials();', put: '' }],
  },
  {
    name: 'the fingerprint omits the note',
    isSeenOutside: true,
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'the same key with other data gets 409 and changes nothing: another note',
    patches: [
      {
        file: 'src/domain/fingerprint.ts',
        find: '[displayName, contact.type, contact.value, sourceId, note, ...added]',
        put: '[displayName, contact.type, contact.value, sourceId, ...added]',
      },
    ],
  },
  {
    name: 'a lead does not hold its number as dialled',
    suite: STORE,
    caughtBy: 'a late call with keys of the former region creates no second lead for the same text',
    patches: [
      {
        file: 'src/domain/phone-number.ts',
        find: 'return [dialled.isAfterKl && IS_NORDIC.test(e164) ? e164 : e164 + suffix, asDialled];',
        put: 'return [e164 + suffix];',
      },
    ],
  },
  {
    name: 'a file is opened although an earlier release left an unfinished step in it',
    suite: UPGRADE,
    caughtBy:
      'a SQLite file in which a release before 1.2 has begun something is refused with advice and stays unchanged',
    patches: [{ file: MIGRATE, find: 'if (isOfBefore12(database)) throw earlierReleaseError($FILE);', put: '' }],
  },
  {
    name: 'a request is admitted when the quota cannot be counted',
    suite: 'test/e2e/http/quota.test.ts',
    caughtBy: 'while requests cannot be counted, every operation gets 503 with a delay and writes nothing',
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
    caughtBy: 'acknowledged leads exist once after power failures at any moment',
    patches: [
      {
        file: 'src/store/sqlite/open-database.ts',
        text: 'PRAGMA synchronous = FULL',
        put: 'PRAGMA synchronous = NORMAL',
      },
    ],
  },
  {
    name: 'the public API returns a lead with an unreadable name',
    suite: STORE,
    caughtBy: 'an unreadable lead fails only its own requests, is left out of lists, and keeps its keys',
    patches: [
      { file: 'src/store/checked.ts', find: 'isJsonText(read.displayName, BOUNDS.displayName.max)', put: 'true' },
    ],
  },
];
