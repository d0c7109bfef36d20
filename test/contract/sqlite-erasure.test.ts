import { readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { toContactKeys } from '../../src/domain/contact.ts';
import type { Lead } from '../../src/domain/lead.ts';
import { vacuumDatabase } from '../../src/store/open-store.ts';
import { LOG_STAYS } from '../../src/store/port/listeners.ts';
import { createCheckpoints } from '../../src/store/sqlite/checkpoints.ts';
import { openedFiles } from '../../src/store/sqlite/opened-files.ts';
import { hashBytes } from '../../src/store/sqlite/rows.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { aLead, aStudio, BY, keysFor, plus, STUDIO_ID, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { connectToCore } from '../support/core-clients.ts';
import { ID_BYTES } from '../support/raw-sqlite.ts';
import { withoutGaps } from '../support/sqlite-pages.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { correctLead, moveLead } from './store-actions.ts';

/** Enough leads to fill, split and move pages of the file. */
const LEADS = 600;

/** The personal data of a lead, as bytes that a file may contain. */
function personalBytes(index: number, lead: Lead): Buffer[] {
  const { sha256 } = keysFor(lead).fingerprint;
  return [
    ...[
      `Name-${index}-`,
      `King-${index}-`,
      `person-${index}-@`,
      `other-${index}-@`,
      `Note-${index}-`,
      `Again-${index}-`,
    ].map((text) => Buffer.from(text)),
    hashBytes(sha256),
    ...toContactKeys(lead.contact, aStudio()).contactKeys.map(hashBytes),
  ];
}

// @proves erasure-2
test("no database file has a byte of an erased lead's personal data, whatever its past", async () => {
  const folder = temporaryFolder();
  const store = openSqliteStore(join(folder, 'leads.db'));
  onTestFinished(() => store.close());
  await store.putStudio(aStudio(), BY);
  const leads = times(LEADS, (index) =>
    aLead({
      displayName: `Name-${index}-`,
      contact: { type: 'email', value: `person-${index}-@example.org` },
      note: `Note-${index}-`.padEnd((index * 37) % 1500, '.'),
    }),
  );
  await Promise.all(leads.map((lead) => store.createLead(lead, keysFor(lead))));
  await Promise.all(
    leads.map(async (lead, index) => {
      const now = plus(lead.createdAt, 1000);
      const contact = { type: 'email', value: `other-${index}-@example.org` } as const;
      const correction = { displayName: `King-${index}-`.padEnd((index * 13) % 150, '.'), contact };
      if (index % 4 === 0) {
        const again = aLead({ contact: lead.contact, note: `Again-${index}-`.padEnd((index * 53) % 1900, '.') });
        await store.createLead(again, keysFor(again), { keepsEnquiry: true });
      }
      if (index % 3 === 0) await correctLead(store, lead, correction, { now });
      if (index % 5 === 0) await moveLead(store, { ...lead, contact }, 'won', { now });
    }),
  );
  const erased = leads.map((lead, index) => ({ lead, index })).filter(({ index }) => index % 2 === 0);
  await Promise.all(
    erased.map(({ lead: { studioId, id: leadId, createdAt } }) =>
      store.eraseLead({ studioId, leadId, memberId: null, now: plus(createdAt, 60_000) }),
    ),
  );

  const found = (read = (file: Buffer) => file) => {
    const files = readdirSync(folder).map((name) => {
      const bytes = readFileSync(join(folder, name));
      return name === 'leads.db' ? read(bytes) : bytes;
    });
    return erased.flatMap(({ lead, index }) =>
      personalBytes(index, lead).filter((bytes) => files.some((file) => file.includes(bytes))),
    );
  };
  await expect.poll(() => found(withoutGaps).length).toBe(0);
  // Fragments remain where pages were split, until a vacuum rewrites the file.
  expect(found()).not.toEqual([]);
  vacuumDatabase(`sqlite:${join(folder, 'leads.db')}`);
  expect(found()).toEqual([]);
  await store.close();
  expect(found()).toEqual([]);
  const kept = leads[1] as Lead;
  expect(readFileSync(join(folder, 'leads.db')).includes(kept.contact.value)).toBe(true);
});

const CORE_TOKEN = 'the token of the tests of erasure, long enough';

/** A database with leads, whose files can be searched for bytes. */
interface Data {
  readonly folder: string;
  readonly env: { readonly DATABASE_URL: string };
  /** Leads in each state, all with one contact. */
  readonly leads: readonly Lead[];
  /** Returns the personal texts and hashes found in any file of the database. */
  found(): string[];
}

/** Fills a database with leads that are open, closed, corrected, or closed directly in the database. */
async function filled(folder: string): Promise<Data> {
  const path = join(folder, 'leads.db');
  const store = openSqliteStore(path);
  await store.putStudio(aStudio(), BY);
  const contact = { type: 'email', value: 'person@example.org' } as const;
  const createdAt = new Date('2024-05-04T10:00:00Z');
  const about = { contact, note: 'Personal note', createdAt };
  const now = plus(createdAt, 1000);
  const leads: Lead[] = [];
  const marks = new Map<string, Buffer>();
  for (const state of ['closed', 'by hand', 'open'] as const) {
    const lead = aLead({ ...about, displayName: `Name ${state}` });
    const keys = keysFor(lead);
    await store.createLead(lead, keys);
    await correctLead(store, lead, { displayName: `King ${state}` }, { now });
    if (state === 'closed') await moveLead(store, lead, 'won', { now });
    if (state === 'by hand') {
      const byHand = new DatabaseSync(path, { timeout: 100_000 });
      byHand.prepare(`UPDATE leads SET stage = 'lost' WHERE id = ${ID_BYTES}`).run(lead.id);
      byHand.close();
    }
    leads.push(lead);
    marks.set(`fingerprint ${state}`, hashBytes(keys.fingerprint.sha256));
    for (const text of ['Name', 'King']) marks.set(`${text} ${state}`, Buffer.from(`${text} ${state}`));
    for (const [index, key] of keys.contactKeys.entries()) marks.set(`contact key ${index}`, hashBytes(key));
  }
  for (const text of [contact.value, about.note]) marks.set(text, Buffer.from(text));
  await store.close();
  const found = () => {
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
    return [...marks].filter(([, mark]) => files.some((file) => file.includes(mark))).map(([text]) => text);
  };
  return { folder, env: { DATABASE_URL: `sqlite:${path}` }, leads, found };
}

/** Runs the command that erases a person's leads. All erasures use the same method of the store. */
const eraseAll = ({ env, leads: [lead] }: Data) =>
  executed(CLI, ['leads', 'erase-contact', STUDIO_ID], { env: { ...env }, input: JSON.stringify(lead?.contact) });

// @proves erasure-2
describe('after an erasure', () => {
  test.each(['leads erase-contact beside a running core', 'EraseLead'])('%s leaves no personal byte', async (way) => {
    const folder = temporaryFolder();
    const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`, CORE_TOKEN } });
    const crm = connectToCore(await readAddress(core), CORE_TOKEN);
    onTestFinished(() => crm.close());
    // The log retains earlier writes while the core has the file open.
    const data = await filled(folder);
    expect(data.found().length).toBeGreaterThan(6);

    if (way === 'EraseLead')
      await Promise.all(data.leads.map(({ studioId, id: leadId }) => crm.leads.eraseLead({ studioId, leadId })));
    else await eraseAll(data);

    // A command truncates the log before it ends, and a core after its response.
    if (way === 'EraseLead') await expect.poll(data.found).toEqual([]);
    else expect(data.found()).toEqual([]);
  });

  test('opening the file completes a leads erase-contact that was killed', async () => {
    const data = await filled(temporaryFolder());
    const dying = `import { Worker } from 'node:worker_threads';
      Worker.prototype.postMessage = () => process.kill(process.pid, 'SIGKILL');`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(dying)}`;
    const killed = eraseAll({ ...data, env: { ...data.env, NODE_OPTIONS } as Data['env'] });
    await expect(killed).rejects.toMatchObject({ signal: 'SIGKILL' });
    expect(data.found()).not.toEqual([]);
    const store = openSqliteStore(join(data.folder, 'leads.db'));
    onTestFinished(() => store.close());
    await expect.poll(data.found).toEqual([]);
  });
});

// @proves erasure-2
test('a failed truncation of the log is retried later', async () => {
  const [folder, link] = [temporaryFolder(), join(temporaryFolder(), 'link')];
  await filled(folder);
  const holder = new DatabaseSync(join(folder, 'leads.db'), { timeout: 100_000 });
  onTestFinished(() => holder.close());
  holder.exec('PRAGMA secure_delete = ON');
  const found = () => readFileSync(join(folder, 'leads.db-wal')).includes('Passing note');
  holder.prepare('UPDATE leads SET note = ?').run('"Passing note"');
  holder.prepare('UPDATE leads SET note = NULL').run();
  expect(found()).toBe(true);
  // The worker cannot open the file.
  const { identities } = openedFiles(join(folder, 'leads.db'));
  const checkpoints = createCheckpoints(join(link, 'leads.db'), identities);
  onTestFinished(() => checkpoints.close());
  checkpoints.erased();
  await new Promise((resolve) => setTimeout(resolve, 500));
  symlinkSync(folder, link);
  await expect.poll(found).toBe(false);
});

// @proves erasure-2
test('the log of a symbolically linked file is also truncated after the start', async () => {
  const { folder } = await filled(temporaryFolder());
  const [path, link] = [join(folder, 'leads.db'), join(temporaryFolder(), 'link.db')];
  const holder = new DatabaseSync(path);
  onTestFinished(() => holder.close());
  holder.prepare('UPDATE leads SET note = NULL').run();
  symlinkSync(path, link);

  const store = openSqliteStore(link);
  onTestFinished(() => store.close());

  await expect.poll(() => statSync(`${path}-wal`).size).toBe(0);
});

// @proves erasure-2
test('an erasure that cannot truncate the log reports that, at its end and after a minute', async () => {
  const data = await filled(temporaryFolder());
  const path = join(data.folder, 'leads.db');
  const reader = new DatabaseSync(path);
  onTestFinished(() => {
    if (reader.isOpen) reader.close();
  });
  reader.exec('BEGIN; SELECT count(*) FROM leads');
  const erase = () => {
    const args = ['leads', 'erase', STUDIO_ID, data.leads[2]?.id ?? ''];
    return run('operator/cli.ts', { args, env: data.env });
  };
  const left = erase();
  expect(await left.ended()).toBe(0);
  expect(left.output()).toContain(LOG_STAYS);
  expect(readFileSync(`${path}-wal`).length).toBeGreaterThan(0);

  let reports = 0;
  const { identities } = openedFiles(path);
  const checkpoints = createCheckpoints(path, identities, () => {
    reports += 1;
  });
  checkpoints.erased();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(reports).toBe(0);
  const { now } = performance;
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + 60_000);
  onTestFinished(() => void vi.restoreAllMocks());
  await expect.poll(() => reports).toBe(1);
  reader.close();
  await checkpoints.close();
  expect(reports).toBe(1);
  const whole = erase();
  expect(await whole.ended()).toBe(0);
  expect(whole.output()).not.toContain(LOG_STAYS);
});

// @proves bounds-38
test('a lead has at most a hundred keys of former contacts, those of the first ones', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const store = openSqliteStore(path);
  onTestFinished(() => store.close());
  await store.putStudio(aStudio(), BY);
  let lead = aLead();
  await store.createLead(lead, keysFor(lead));
  const { contactKeys } = toContactKeys(lead.contact, aStudio());
  for (const index of times(150, (each) => each)) {
    const contact = { type: 'email', value: `person-${index}@example.org` } as const;
    await correctLead(store, lead, { contact }, { now: plus(lead.createdAt, index + 1) });
    lead = { ...lead, contact };
  }

  using database = new DatabaseSync(path, { timeout: 100_000 });
  const { count } = database.prepare('SELECT count(*) AS count FROM former_contacts').get() as { count: number };
  expect(count).toBe(100);
  expect((await store.findLeadsOfContact(STUDIO_ID, contactKeys, 'former')).leads).toHaveLength(1);
});
