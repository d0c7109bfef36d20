import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { openDatabase } from '../../src/store/sqlite/open-database.ts';
import { temporaryFolder } from '../support/processes.ts';
import { type Damaged, expectFaults, expectNoFaultsBesideChanges, faultsIn } from './damage-contract.ts';

const FIXTURES = join(import.meta.dirname, '../upgrade');

/** Copies a database that has something of everything, opens one of the last release, and changes it by hand. */
function aCopy(sql = '', name = 'sqlite-1.2.db', isOpened = name === 'sqlite-1.2.db') {
  const path = join(temporaryFolder(), 'leads.db');
  copyFileSync(join(FIXTURES, name), path);
  if (isOpened) openDatabase(path).database.close();
  const direct = new DatabaseSync(path);
  direct.exec('PRAGMA foreign_keys = OFF');
  direct.exec(sql);
  direct.close();
  return { path, url: `sqlite:${path}` };
}

const lead = (number: number) => `leads WHERE number = ${number}`;
const setLead = (number: number, set: string) => `UPDATE leads SET ${set} WHERE number = ${number}`;

/** Leads of the fixture: open ones with one key and with three, a closed one, an erased one, and one of which deliveries wait. */
const [OPEN, OF_THREE, CLOSED, ERASED] = [3, 2, 4, 7];
const FAR = '9223372036854775807';

const DAMAGES: readonly Damaged<string>[] = [
  [
    `DELETE FROM contact_claims WHERE lead_number = ${OPEN}`,
    /^whole database has 1 open leads that do not hold .*: berlin\/01a21fca-d050-/,
  ],
  [
    `DELETE FROM contact_claims WHERE contact_key = (SELECT min(contact_key) FROM contact_claims WHERE lead_number = ${OF_THREE})`,
    /has 1 open leads that do not hold/,
  ],
  [
    `DELETE FROM contact_claims WHERE lead_number = ${CLOSED}`,
    /has 1 closed leads that hold .*: berlin\/01a21fca-d057-/,
  ],
  [
    `UPDATE contact_claims SET contact_key = substr(contact_key, 1, 32) WHERE lead_number = ${CLOSED}`,
    /has 1 closed leads that hold/,
  ],
  [setLead(OPEN, "stage = 'won'"), /has 1 closed leads that hold/],
  [setLead(CLOSED, "stage = 'new'"), /has 1 open leads that do not hold/],
  [
    `INSERT INTO contact_claims VALUES (1, randomblob(32), ${OPEN})`,
    /has 1 keys of contacts that no lead has.*: berlin\/01a2/,
  ],
  [
    'INSERT INTO contact_claims VALUES (1, randomblob(32), 99)',
    /has 1 keys of contacts that no lead has.*: berlin\/\?/,
  ],
  ['INSERT INTO contact_claims VALUES (99, randomblob(33), 1)', /has 1 keys of contacts that no lead has.*: \?\/01a2/],
  [
    `UPDATE contact_claims SET lead_number = ${OF_THREE} WHERE lead_number = ${OPEN}`,
    /has 1 open leads that do not hold/,
    /has 1 keys of contacts that no lead has/,
  ],
  [setLead(OPEN, "contact_keys = x''"), /has 1 open leads that do not hold/, /has 1 keys of contacts that no lead has/],
  [setLead(OPEN, "contact_keys = x'00'"), /has 1 leads whose contact keys cannot be read: berlin\/01a2/],
  [
    setLead(ERASED, "display_name = 'Ada'"),
    /has 1 erased leads of which personal data are left: berlin\/01a21fca-d071-/,
  ],
  [setLead(ERASED, "original = '{}'"), /has 1 erased leads of which/],
  [setLead(ERASED, 'fingerprint = randomblob(32)'), /has 1 erased leads of which/],
  [`UPDATE former_contacts SET lead_number = ${ERASED}`, /has 1 erased leads of which/],
  [setLead(OPEN, 'updated_at = created_at - 1'), /has 1 leads that changed before they were created/],
  [setLead(OPEN, "change_kinds = '['"), /has 1 leads whose waiting changes cannot be read/],
  [setLead(OPEN, 'revision = -1'), /has 1 leads whose waiting changes cannot be read/],
  [setLead(OPEN, 'revision = 0'), /has 1 deliveries of a state .*: berlin\/01a21fca-d050-.* for consumer 1\. Remove/],
  ['UPDATE deliveries SET lead = 99 WHERE lead = 3', /has 1 records of leads that do not exist: \?\/\? for consumer 1/],
  ["UPDATE deliveries SET kinds = 'zzz' WHERE lead = 3", /has 1 deliveries that cannot be read/],
  ['UPDATE deliveries SET reason = NULL', /has 2 deliveries that cannot be read/],
  ['UPDATE former_contacts SET lead_number = 99', /has 1 records of leads that do not exist/],
  [
    "UPDATE audit_events SET lead_id = '01a21fca-0000-7000-8000-000000000000' WHERE number = (SELECT max(number) FROM audit_events WHERE lead_id IS NOT NULL)",
    /has 1 records of leads that do not exist: event \d+\./,
  ],
  [
    "UPDATE audit_events SET api_key_id = '01a21fca-0000-7000-8000-000000000000' WHERE action = 'api-key-revoked'",
    /has 1 events of API keys/,
  ],
  [
    "UPDATE audit_events SET studio_id = 'nobody' WHERE number = 1",
    /has 1 records of studios that do not exist: event 1/,
  ],
  ["DELETE FROM studios WHERE id = 'held'", /has \d+ records of studios that do not exist: held in /],
  [`UPDATE members SET studio_id = 'nobody'`, /has 1 records of studios that do not exist: nobody in members/],
  ["UPDATE api_keys SET slot = '19' WHERE revoked_at IS NOT NULL", /has 1 revoked API keys in the slot/],
  ["UPDATE api_keys SET slot = 'x' WHERE name = 'Shop'", /has 1 API keys in a slot/],
  ["UPDATE api_keys SET name = ''", /has 3 API keys whose name cannot be read/],
  ["UPDATE studios SET status = 'closed' WHERE id = 'held'", /has 1 studios whose status cannot be read: held\./],
  ["UPDATE members SET role = 'boss'", /has 1 members whose role cannot be read: berlin\/owner\./],
  ["UPDATE lead_sources SET name = ''", /has 2 lead sources whose name cannot be read/],
  [
    "UPDATE consumers SET studio_ids = 'zzz' WHERE name = 'copy'",
    /has 1 consumers whose studioIds cannot be read: copy\./,
  ],
  ["UPDATE audit_events SET action = 'studio-sold' WHERE number = 1", /has 1 events whose action cannot be read/],
  ["UPDATE logged_requests SET request = '{'", /has 1 requests whose operation cannot be read/],
  [setLead(OPEN, "stage = 'qualified'"), /has 1 leads whose stage cannot be read/],
  [setLead(OPEN, "fingerprint = x''"), /has 1 leads whose fingerprint cannot be read/],
  [setLead(OPEN, `created_at = ${FAR}`), /has 1 leads whose createdAt cannot be read/],
  [setLead(OPEN, "original = '{'"), /has 1 leads whose original cannot be read/],
  [
    setLead(5, `original = json_set(original, '$.enquiries.kept[0].time', 'soon')`),
    /has 1 leads whose enquiries cannot be read/,
  ],
  [setLead(OPEN, "idempotency_key = x'00'"), /has 1 leads whose idempotencyKey cannot be read/],
  [setLead(ERASED, "idempotency_key = x'00'"), /has 1 leads whose idempotencyKey cannot be read/],
  [`UPDATE consumers SET number = ${FAR} WHERE name = 'copy'`, /has 1 consumers whose number or name another/],
  [
    setLead(OPEN, 'studio_number = 99'),
    /records of studios/,
    /studioId cannot/,
    /keys of contacts/,
    /of leads that do not/,
  ],
  [
    `DELETE FROM ${lead(OPEN)}`,
    /has 1 keys of contacts that no lead has/,
    /has [2-9] records of leads that do not exist/,
  ],
  [`UPDATE retention_time SET time = ${FAR}`, /has 1 times of retention/],
  ['UPDATE database_epoch SET epoch = -1', /has 1 epochs that cannot be read: -1\./],
  [
    'DROP INDEX leads_by_unacknowledged_change',
    /has 1 parts of the schema .*: index leads_by_unacknowledged_change on leads \(changed_since\) of some rows\./,
  ],
  ['DROP INDEX leads_by_idempotency_key', /^database the index leads_by_idempotency_key is missing/],
  ['DROP TABLE test_studios', /has 1 parts of the schema that are missing: table test_studios/],
  [
    'ALTER TABLE leads DROP COLUMN rule_region',
    /has 1 parts of the schema that are missing: column leads\.rule_region TEXT/,
  ],
];

// @proves limits-12
describe('a damaged file', () => {
  test.each(DAMAGES.map(([sql, ...faults]) => [sql, faults] as const))('%s', async (sql, faults) => {
    expectFaults(await faultsIn(aCopy(sql).url), faults);
  });

  test('is found, whichever page of it has a wrong byte in front', async () => {
    const { path, url } = aCopy();
    const content = readFileSync(path);
    const missed: number[] = [];
    for (let at = 0; at < content.length; at += 4096) {
      const wrong = Buffer.from(content);
      // The first page begins with the words by which a file is one of SQLite, and with the size of its pages.
      wrong[at === 0 ? 16 : at] = (wrong[at === 0 ? 16 : at] as number) ^ 0xff;
      writeFileSync(path, wrong);
      const found = await faultsIn(url);
      if (found.length === 0) missed.push(at / 4096);
    }
    expect(missed).toEqual([]);
  });

  test('is found behind more rows than are read at a time', async () => {
    const many = 'WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1200)';
    const { url } = aCopy(`
      INSERT INTO audit_events (studio_id, action, time)
        ${many} SELECT 'berlin', iif(i < 1200, 'studio-status-changed', 'studio-sold'), 1700000000000 FROM n;
      INSERT INTO logged_requests
        ${many} SELECT studio_id, printf('01a21fff-0000-7000-8000-%012x', i), iif(i < 1200, request, '{') FROM logged_requests, n`);
    expectFaults(await faultsIn(url), [
      /has 1 events whose/,
      /has 1 requests whose .*: berlin\/01a21fff-0000-7000-8000-0000000004b0\./,
    ]);
  });

  test('names ten records of a kind, counts all, and is not opened for writing', async () => {
    const { path, url } = aCopy("UPDATE audit_events SET action = 'studio-sold'");
    const before = readFileSync(path);
    const [found = ''] = await faultsIn(url);
    expect(found).toMatch(/has 48 events whose action cannot be read: (?:[^ ,]+, ){10}…\. /);
    expect(readFileSync(path).equals(before)).toBe(true);
  });
});

// @proves limits-12
describe('a file that is not damaged', () => {
  test('of release 1.2 lacks what a core of this release adds when it starts', async () => {
    const { url } = aCopy('', 'sqlite-1.2.db', false);
    expectFaults(await faultsIn(url), [/that are missing: column leads\.api_key_id BLOB\. A core makes what it needs/]);
  });

  test('of release 1.2, once a core of this release has opened it', async () => {
    const { url } = aCopy();
    await (await openStore(url)).close();
    expect(await faultsIn(url)).toEqual([]);
  });

  test('that is not there is a fault, and settings that cannot be read', async () => {
    expectFaults(await faultsIn(`sqlite:${join(temporaryFolder(), 'none.db')}`), [/^whole database cannot be read/]);
    expectFaults(await faultsIn('sqlite:'), [/^core settings/, /^whole database was not read/]);
  });

  test('whatever is done, also meanwhile', { timeout: 300_000 }, async () => {
    await expectNoFaultsBesideChanges(aCopy().url, 4000);
  });
});
