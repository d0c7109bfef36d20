import type { PlantedBug } from './planted-bug.ts';

const STORE = 'test/contract/sqlite-store.test.ts';
const LOCKS = 'test/contract/sqlite-locks.test.ts';
const INDEXES = 'test/contract/sqlite-indexes.test.ts';
const LEADS = 'src/store/sqlite/leads.ts';
const LEAD = 'src/domain/lead.ts';
const CLAIMS = 'src/store/sqlite/contact-claims.ts';
const SCHEMA = 'src/store/sqlite/schema.ts';
const MIGRATE = 'src/store/sqlite/migrate.ts';
const UPGRADE = 'test/upgrade/upgrade.test.ts';
const CREATE_LEAD = 'src/usecases/create-lead.ts';

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
        find: 'const earlier = findByKey(studioId, studio, idempotencyKey);',
        put: `if (holder !== undefined) return { kind: 'already-open', leadId: holder };
              const earlier = findByKey(studioId, studio, idempotencyKey);`,
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
        text: 'CREATE UNIQUE INDEX leads_by_idempotency_key',
        put: 'CREATE INDEX leads_by_idempotency_key',
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
      { file: CLAIMS, find: 'if (stage !== null && isOpen(stage)) return idText(id);', put: 'if (id) continue;' },
    ],
  },
  {
    name: 'an insert does not name the index of keys',
    suite: INDEXES,
    caughtBy: 'an index lost between the call and the write of a creation makes the creation fail',
    patches: [{ file: LEADS, text: 'ON CONFLICT (studio_number, idempotency_key) DO NOTHING', put: '' }],
  },
  {
    name: 'the shared read transaction outlasts a turn of the event loop',
    suite: STORE,
    caughtBy: 'see what another process has written before them, turn by turn',
    patches: [
      {
        file: 'src/store/sqlite/shared-transaction.ts',
        find: 'process.nextTick(() => this.end());',
        put: 'setTimeout(() => this.end(), 20);',
      },
    ],
  },
  {
    name: 'a partial index is accepted',
    suite: INDEXES,
    caughtBy:
      'with an index that is partial of the same name nothing is created, even after a restart, until it is dropped',
    patches: [{ file: 'src/store/sqlite/key-index.ts', find: 'unique === 1 && partial === 0', put: 'unique === 1' }],
    inSoak: true,
  },
  {
    name: 'the check of the store succeeds while writes fail',
    suite: STORE,
    caughtBy: 'makes the check fail until writes succeed again',
    patches: [{ file: 'src/store/sqlite/group-commit.ts', find: 'this.#lastError = cause;', put: '' }],
  },
  {
    name: 'waiting for the lock of another process blocks the core',
    suite: LOCKS,
    caughtBy: 'createLead waits, and does not block what is read',
    patches: [
      {
        file: 'src/store/sqlite/sqlite-store.ts',
        find: "database.exec('PRAGMA busy_timeout = 0');",
        put: '',
      },
    ],
  },
  {
    name: 'a write is refused as soon as it meets the lock of another process',
    suite: LOCKS,
    caughtBy: 'createLead waits, and does not block what is read',
    patches: [{ file: 'src/store/sqlite/group-commit.ts', find: 'isLocked(error)', put: 'false' }],
    inSoak: true,
  },
  {
    name: 'any number of writes wait for the lock of another process',
    suite: LOCKS,
    caughtBy: 'a bounded number of writes wait; the next is refused immediately',
    patches: [
      {
        file: 'src/store/sqlite/group-commit.ts',
        find: 'this.#retry && this.#pending.length >= MAX_WAITING_WRITES',
        put: 'this.#pending.length > 1e9',
      },
    ],
    inSoak: true,
  },
  {
    name: 'closing the store drops the writes that wait for a lock',
    suite: LOCKS,
    caughtBy: 'closing the store waits for the writes that wait',
    patches: [{ file: 'src/store/sqlite/sqlite-store.ts', find: 'await commits.settled();', put: '' }],
  },
  {
    name: 'a read fails while another process recovers the log',
    suite: LOCKS,
    caughtBy: 'reads wait, and are answered after it',
    patches: [
      {
        file: 'src/store/sqlite/lock-retries.ts',
        find: '!isLocked(error) || performance.now() > giveUp',
        put: 'giveUp > 0',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the database file is readable by every user of the machine',
    suite: STORE,
    caughtBy: 'the files are accessible to their owner only, even in a folder open to all',
    patches: [{ file: 'src/store/sqlite/open-database.ts', find: "closeSync(openSync(path, 'a', 0o600));", put: '' }],
    inSoak: true,
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
    name: 'a failed write is not rolled back',
    suite: STORE,
    caughtBy: 'roll back all of a write that fails half-way, and nothing else',
    patches: [
      {
        file: 'src/store/sqlite/group-commit.ts',
        text: 'ROLLBACK TO one_write; RELEASE one_write',
        put: 'RELEASE one_write',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a failed write fails its whole group commit',
    suite: STORE,
    caughtBy: 'all succeed except one that fails',
    patches: [
      {
        file: 'src/store/sqlite/group-commit.ts',
        find: 'return writes.map((write) => this.#performAlone(write));',
        put: 'throw error;',
      },
    ],
  },
  {
    name: 'a created lead does not store its idempotency key',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'the same key with the same data is a replay of the first lead',
    patches: [
      {
        file: LEADS,
        find: 'insert().run($$$BEFORE, idempotencyKey, hashBytes(fingerprint.sha256), $$$LAST)',
        put: 'insert().run($$$BEFORE, lead.id, hashBytes(fingerprint.sha256), $$$LAST)',
      },
    ],
  },
  {
    name: 'an idempotency key with other data is a replay',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'the same key with other data is a conflict, and nothing is written',
    patches: [
      {
        file: 'src/store/replay-outcome.ts',
        find: 'sameData(earlier.fingerprint, repeated)',
        put: 'earlier',
      },
    ],
  },
  {
    name: 'closing a lead frees its idempotency key',
    suite: STORE,
    caughtBy: 'a replay returns the current lead, even after it was closed and another lead has the contact',
    patches: [
      {
        file: LEADS,
        text: 'SET stage = ?1,',
        put: `SET idempotency_key = CASE WHEN ?1 IN ('won', 'lost') THEN id ELSE idempotency_key END, stage = ?1,`,
      },
    ],
    inSoak: true,
  },
  {
    name: 'a refused creation reserves its idempotency key',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'a refused creation leaves its key free for other data',
    patches: [
      {
        file: LEADS,
        find: 'const holder = isOpen(lead.stage) ? $HOLDER : undefined;',
        put: `if (bound.has(idempotencyKey)) return { kind: 'idempotency-conflict' };
              const holder = isOpen(lead.stage) ? $HOLDER : undefined;`,
      },
      {
        file: LEADS,
        find: 'if (holder === undefined) throw $ERROR;',
        put: `if (holder === undefined) throw $ERROR; bound.add(idempotencyKey);`,
      },
      {
        file: LEADS,
        find: 'return (lead, { idempotencyKey, $$$MORE }, $NOW) => $CREATE;',
        put: 'const bound = new Set(); return (lead, { idempotencyKey, $$$MORE }, $NOW) => $CREATE;',
      },
    ],
  },
  {
    name: 'closing a lead does not free its contact',
    suite: STORE,
    caughtBy: 'a lead that is won frees its contact',
    patches: [
      {
        file: LEADS,
        find: 'claimed.free(studio, before, { number, isOpen: wasOpen });',
        put: '',
      },
      // Otherwise, the remaining claim is removed when it is found.
      {
        file: 'src/store/sqlite/contact-claims.ts',
        find: 'stage !== null && isOpen(stage)',
        put: 'stage !== null',
      },
    ],
    inSoak: true,
  },
  {
    name: 'any stage change of a lead frees its contact',
    suite: STORE,
    caughtBy: 'a lead that is contacted keeps its contact',
    patches: [
      {
        file: LEADS,
        find: 'if (wasOpen !== becomesOpen) $THEN',
        put: 'claimed.free(studio, hashesIn(contactKeys) ?? [], { number, isOpen: wasOpen }); if (wasOpen !== becomesOpen) $THEN',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a reopened lead does not claim its contact',
    suite: STORE,
    caughtBy: 'a reopened lead claims its contact again',
    patches: [{ file: LEADS, find: 'claimed.take(studio, after, { number, isOpen: becomesOpen });', put: '' }],
    inSoak: true,
  },
  {
    name: 'updatedAt decreases when the clock goes back',
    suite: STORE,
    caughtBy: 'updatedAt grows when the clock went back',
    patches: [{ file: LEAD, find: 'new Date(Math.max(now.getTime(), previous.getTime() + 1))', put: 'now' }],
    inSoak: true,
  },
  {
    name: 'a lead of another studio is found by its id',
    suite: STORE,
    caughtBy: "another studio's leads are never seen",
    patches: [
      {
        file: LEADS,
        find: `select(LEAD_COLUMNS, "id = unhex(?, '-')")`,
        put: `select(LEAD_COLUMNS, "id = unhex(?2, '-') OR id = unhex(?2, '-')")`,
      },
    ],
    inSoak: true,
  },
  {
    name: 'leads are listed oldest first',
    suite: STORE,
    caughtBy: 'leads are sorted by id, highest first, whatever the order of creation',
    patches: [{ file: LEADS, text: 'ORDER BY id DESC', put: 'ORDER BY id ASC' }],
    inSoak: true,
  },
  {
    name: 'a page repeats the last lead of the previous page',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'a page has at most the limit, and the pages together have every lead once',
    patches: [{ file: LEADS, text: 'id < unhex', put: 'id <= unhex' }],
    inSoak: true,
  },
  {
    name: 'the store caches credentials by secret',
    suite: STORE,
    caughtBy: 'a replaced secret is invalid immediately, in every process',
    patches: [
      {
        file: 'src/store/sqlite/api-keys.ts',
        find: 'const row = selectCredential.get(sourceId, secretSha256);',
        put: `const hex = Buffer.from(secretSha256).toString('hex');
              const row = seen.get(hex) ?? selectCredential.get(sourceId, secretSha256);
              if (row) seen.set(hex, row);`,
      },
      {
        file: 'src/store/sqlite/api-keys.ts',
        find: 'const legible = $VALUE;',
        put: 'const seen = new Map<string, ReturnType<typeof selectCredential.get>>(); const legible = $VALUE;',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a studio may have 21 live keys',
    suite: STORE,
    caughtBy: 'of 30 concurrent creations of keys, 20 succeed',
    patches: [
      {
        file: 'src/domain/api-key.ts',
        find: 'length: MAX_LIVE_KEYS',
        put: 'length: MAX_LIVE_KEYS + 1',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a revoked key is accepted',
    suite: 'test/e2e/http/authentication.test.ts',
    caughtBy: 'that is revoked is refused immediately and permanently',
    patches: [{ file: 'src/domain/api-key.ts', find: 'key.revokedAt === null && $REST', put: '$REST' }],
    inSoak: true,
  },
  {
    name: 'the core caches authenticated keys',
    suite: 'test/e2e/http/authentication.test.ts',
    caughtBy: 'is accepted until its expiry, and again once it is replaced with a later expiry',
    patches: [
      {
        file: 'src/usecases/authenticate-api-key.ts',
        find: 'const credential = await authenticateApiKey(deps, { secretSha256, sourceId, studios });',
        put: `const name = Buffer.from(secretSha256).toString('latin1');
    const credential = seen.get(name) ?? (await authenticateApiKey(deps, { secretSha256, sourceId, studios }));
    seen.set(name, credential);`,
      },
      {
        file: 'src/usecases/authenticate-api-key.ts',
        find: 'const noteUse = keyUseNoter(deps.store);',
        put: 'const noteUse = keyUseNoter(deps.store);\n  const seen = new Map();',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the gateway refuses a request without checking its cached key at the core',
    suite: 'test/e2e/http/check-order.test.ts',
    caughtBy:
      'a request with two faults is refused for the first in the order of checks, and nothing is written: revoked key, invalid body',
    patches: [
      {
        file: 'gateway/plugins/check-key-before-refusal.ts',
        find: 'key.isChecked ? error : await core.authenticate(bearerToCheck(key, request.id)).then(() => error, (problem) => problem)',
        put: 'error',
      },
    ],
  },
  {
    name: 'a request whose cached key is invalid stays counted',
    suite: 'test/e2e/http/quota.test.ts',
    caughtBy:
      'is not used by a request that is refused before it: no key, suspended studio, missing scope, unknown path',
    patches: [
      {
        file: 'gateway/plugins/check-key-before-refusal.ts',
        find: 'await refundRequest(key, reply, quota);',
        put: "reply.removeHeader('ratelimit').removeHeader('ratelimit-policy');",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a disabled source is accepted',
    suite: 'test/e2e/http/create-lead.test.ts',
    caughtBy: 'that is disabled is refused, and nothing is written',
    patches: [{ file: CREATE_LEAD, find: '!source?.enabled', put: '!source' }],
    inSoak: true,
  },
  {
    name: 'a source of another studio is accepted',
    suite: 'test/e2e/http/create-lead.test.ts',
    caughtBy: 'that is of another studio is refused, and nothing is written',
    patches: [
      {
        file: 'src/store/sqlite/api-keys.ts',
        text: 'lead_sources.studio_id = api_keys.studio_id AND lead_sources.id = ?',
        put: 'lead_sources.id = ?',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a replay is refused once its source is disabled',
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'gets it after the source was disabled',
    patches: [{ file: CREATE_LEAD, find: 'if (!earlier) throw $REFUSAL;', put: 'throw $REFUSAL;' }],
  },
  {
    name: 'a replay returns the current lead',
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'gets it after the lead was closed and the contact has another open one',
    patches: [
      {
        file: CREATE_LEAD,
        find: '{ lead: asCreated(outcome.lead), replayed: true }',
        put: '{ lead: outcome.lead, replayed: true }',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a full last page has a next cursor',
    suite: 'test/e2e/http/list-leads.test.ts',
    caughtBy: 'that ends with a full page has no further cursor',
    patches: [
      {
        file: 'src/store/pages.ts',
        find: 'next: null',
        put: 'next: (records.length === limit && last && idOf(last)) || null',
      },
    ],
    inSoak: true,
  },
  {
    name: 'a page omits the first lead after the previous page',
    isSeenOutside: true,
    suite: STORE,
    caughtBy: 'leads are sorted by id, lowest first, and the pages together have every lead once',
    patches: [{ file: 'src/store/pages.ts', find: 'next: records.at(-1)?.id ?? null', put: 'next: record.id' }],
  },
  {
    name: 'idempotency keys are case-sensitive',
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'gets it in any letter case of the key',
    patches: [
      { file: CREATE_LEAD, find: 'idempotencyKey.toLowerCase()', put: 'idempotencyKey' },
      // The bytes of a UUID have no letter case.
      { file: LEADS, text: "unhex(?, '-'), ?, ?, ?) ON CONFLICT", put: 'CAST(? AS BLOB), ?, ?, ?) ON CONFLICT' },
      { file: LEADS, text: "idempotency_key = unhex(?, '-')", put: 'idempotency_key = CAST(? AS BLOB)' },
    ],
    inSoak: true,
  },
  {
    name: 'the fingerprint omits the note',
    isSeenOutside: true,
    suite: 'test/e2e/http/idempotency.test.ts',
    caughtBy: 'is refused with 409, and nothing is written or changed: another note',
    patches: [
      {
        file: 'src/domain/fingerprint.ts',
        find: '[displayName, contact.type, contact.value, sourceId, note]',
        put: '[displayName, contact.type, contact.value, sourceId]',
      },
    ],
  },
  {
    name: 'a lead does not claim the digits of its contact',
    suite: STORE,
    caughtBy: 'a late call with claims of the former region creates no second lead for the same text',
    patches: [
      {
        file: 'src/domain/contact-keys.ts',
        find: 'return [...(e164 === undefined ? [] : [$E164]), $DIGITS];',
        put: 'return [e164 === undefined ? $DIGITS : $E164];',
      },
      {
        file: 'src/domain/contact-keys-of-1-1.ts',
        find: "dialled(value).ascii.startsWith('+') ? [form] : $BOTH",
        put: '[form]',
      },
    ],
  },
  {
    name: 'a contact is searched by the current region only',
    suite: STORE,
    caughtBy: 'a lead is found by the region that it was opened in, whatever the region is now, open or closed',
    patches: [
      {
        file: 'src/domain/claims.ts',
        find: '[regionCode, ...formerRegions].flatMap($KEYS)',
        put: '[regionCode].flatMap($KEYS)',
      },
    ],
  },
  {
    name: 'a changed region is not noted as a former one',
    suite: STORE,
    caughtBy:
      'every region that a studio had is a former one after the change, none included, also of concurrent changes',
    patches: [
      {
        file: 'src/store/release-1-1.ts',
        find: '[before.regionCode, ...before.formerRegions]',
        put: 'before.formerRegions',
      },
    ],
  },
  {
    name: 'a closed lead is found by the current region only',
    suite: STORE,
    caughtBy: 'a closed lead is found by the claims that it had, and by those given when it was closed',
    patches: [
      {
        file: LEADS,
        find: 'becomesOpen ? claims.contactKeys : [...new Set([...before, ...claims.contactKeys])]',
        put: 'claims.contactKeys',
      },
    ],
  },
  {
    name: 'a put of a studio without a region removes the region',
    suite: STORE,
    caughtBy: 'fields that a put of a studio omits stay unchanged',
    patches: [
      {
        file: 'src/store/sqlite/directory.ts',
        find: 'regionCode === undefined ? ((row?.region_code ?? null) as string | null) : regionCode',
        put: 'regionCode ?? null',
      },
    ],
  },
  {
    name: 'a renewal of claims that release 1.1 has begun continues',
    suite: UPGRADE,
    caughtBy: 'has former regions for each renewal in progress when the first core starts, also when several do',
    patches: [
      { file: MIGRATE, text: 'UPDATE studios SET claim_renewal = NULL WHERE claim_renewal IS NOT NULL', put: '' },
    ],
  },
  {
    name: 'the regions of a renewal that release 1.1 has begun are lost',
    suite: UPGRADE,
    caughtBy: 'has former regions for each renewal in progress when the first core starts, also when several do',
    patches: [
      {
        file: MIGRATE,
        text: 'INSERT OR IGNORE INTO former_regions (studio_id, region_code)',
        put: 'CREATE TEMP TABLE none (a, b); INSERT INTO none',
      },
    ],
    inSoak: true,
  },
  {
    name: 'claims by the rule of release 1.0 are taken for current ones',
    suite: UPGRADE,
    caughtBy: 'with a renewal of claims by the rule of release 1.0 is refused by name, and not changed',
    patches: [{ file: MIGRATE, find: 'if (ofFirst !== undefined) throw $FAULT', put: '' }],
  },
  {
    name: 'a studio number assigned in a transaction that is rolled back is cached',
    suite: 'test/unit/studio-numbers.test.ts',
    caughtBy: 'is not cached when its transaction is rolled back: another studio may get it',
    patches: [
      {
        file: 'src/store/sqlite/studio-numbers.ts',
        find: 'assign: (studioId) => inWrite(studioId) ?? $INSERTED',
        put: `assign(studioId) {
          const number = inWrite(studioId) ?? $INSERTED;
          cache.set(studioId, number);
          return number;
        }`,
      },
    ],
  },
  {
    name: 'the number of a deleted studio is reused',
    suite: STORE,
    caughtBy: 'never reuses the number of a studio, even when it was deleted',
    patches: [
      {
        file: SCHEMA,
        text: 'PRIMARY KEY AUTOINCREMENT,\n    studio_id',
        put: 'PRIMARY KEY,\n    studio_id',
      },
    ],
  },
  {
    name: 'a file of an earlier schema is opened',
    suite: UPGRADE,
    caughtBy: 'of an earlier schema (7) is refused by name, and not changed',
    patches: [{ file: MIGRATE, find: 'version > 0 && version < SCHEMA_VERSION', put: 'version > 0 && version < 7' }],
  },
  {
    name: 'a name is converted to NFC before it is stored',
    suite: 'test/e2e/http/create-lead.test.ts',
    caughtBy: 'is returned with its texts unchanged: combining marks',
    patches: [
      {
        file: 'src/rpc/exchange-service.ts',
        find: 'const command = { studioId, idempotencyKey, displayName, $$$REST };',
        put: "const command = { studioId, idempotencyKey, displayName: displayName.normalize('NFC'), $$$REST };",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a request is admitted when the quota cannot be counted',
    suite: 'test/e2e/http/quota-store-away.test.ts',
    caughtBy: 'refuses every request while Redis is killed, and serves again without a restart',
    patches: [
      {
        file: 'gateway/plugins/quota.ts',
        find: "if (error instanceof QuotaUnavailable) throw new Problem('integration_rate_unavailable', { cause: error });",
        put: 'if (error instanceof QuotaUnavailable) return { admitted: true, limit: 1, remaining: 1, resetSeconds: 1, windows: [] };',
      },
    ],
  },
  {
    name: 'on SQLite, the open lead of one key is cut off behind the closed ones of another',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy:
      'above the bound: as many as the bound are found, including the open ones, whichever of the keys they have',
    patches: [
      {
        file: 'src/store/sqlite/leads.ts',
        find: '[1, MAX_EXAMINED_OF_CONTACT]',
        put: '[MAX_EXAMINED_OF_CONTACT]',
      },
    ],
  },
  {
    name: 'after the clock was set back, the use of a key counts as stored',
    suite: 'test/e2e/audit.test.ts',
    caughtBy: 'is written after the clock was set back by 86400000 ms',
    patches: [
      {
        file: 'src/usecases/note-key-use.ts',
        find: 'time >= began && time - began < WRITE_INTERVAL_MS',
        put: 'time - began < WRITE_INTERVAL_MS',
      },
    ],
  },
  {
    name: 'on SQLite, a repeated request takes effect again',
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'takes effect once: putMember, a member that somebody else removes stays removed',
    patches: [
      {
        file: 'src/store/sqlite/applied-requests.ts',
        find: 'requestId !== undefined && select.get(requestId) !== undefined',
        put: "requestId === ''",
      },
      {
        file: 'src/store/sqlite/applied-requests.ts',
        text: 'INSERT INTO applied_requests',
        put: 'INSERT OR IGNORE INTO applied_requests',
      },
    ],
  },
];
