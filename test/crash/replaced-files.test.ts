import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { createChance, seedFrom } from '../tools/chance.ts';
import { run, temporaryFolder } from '../tools/processes.ts';
import { connectClients, deployApart } from './deployment.ts';
import { created, startLoad } from './load.ts';

/** The seed of the requests. */
const SEED = seedFrom('REPLACED_SEED');

const LEADS_BEFORE = 50;

const ends = (path: string) => ['', '-wal', '-shm'].map((end) => path + end);

/** Changes of a running core's files by hand. A restart then finds the leads of the backup, all leads, or none. */
const HANDS = [
  ['mv backup.db leads.db', (path: string, backup: string) => renameSync(backup, path), 'of the backup'],
  ['rm leads.db-wal', (path: string) => rmSync(`${path}-wal`), 'all'],
  ['rm leads.db-shm', (path: string) => rmSync(`${path}-shm`), 'all'],
  ['rm leads.db*', (path: string) => ends(path).forEach((file) => void rmSync(file, { force: true })), 'none'],
  ['rm -r data', (path: string) => rmSync(dirname(path), { recursive: true }), 'none'],
] as const;

// @proves crashes-48
test.each(HANDS)(
  'after %s a core acknowledges nothing, is not ready and logs what to do',
  { timeout: 200_000 },
  async (_command, hand, found) => {
    const folder = temporaryFolder();
    const [path, backup] = [join(folder, 'data', 'leads.db'), join(folder, 'backup.db')];
    const deployment = await deployApart({ DATABASE_URL: `sqlite:${path}`, LOG_LEVEL: 'warn' });
    const load = await startLoad(deployment.gatewayUrl, connectClients(deployment), createChance(SEED));
    onTestFinished(async () => void (await load.stop()));
    const { ledger } = load;
    await created(load, LEADS_BEFORE);
    const backedUp = new Set(ledger.requests.flatMap((each) => (acknowledged(each) ? [each.key] : [])));
    const command = run('operator/cli.ts', { args: ['backup', backup], env: { DATABASE_URL: `sqlite:${path}` } });
    expect(await command.ended(), command.output()).toBe(0);
    await created(load, LEADS_BEFORE);

    const before = ledger.requests.length;
    hand(path, backup);

    const isReady = async () => (await fetch(`${deployment.gatewayUrl}/readyz`)).ok;
    await expect.poll(isReady, { timeout: 100_000 }).toBe(false);
    const after = ledger.requests.length;
    await expect.poll(() => ledger.requests.length, { timeout: 100_000 }).toBeGreaterThan(after + LEADS_BEFORE);
    await load.stop();
    await deployment.process('core').printed(/leads\.db\S* was replaced or removed while the database was open/);
    expect(ledger.requests.slice(after).filter(acknowledged)).toEqual([]);

    await deployment.kill('core');
    const { keys = [], faults = [] } = existsSync(path) ? contents(path) : {};
    // Earlier commits may have been answered later, so only requests sent after the change are checked.
    const lost = ledger.requests.slice(before).filter((each) => acknowledged(each) && !keys.includes(each.key));
    expect(lost).toEqual([]);
    expect(faults).toEqual(found === 'none' ? [] : [['ok']]);
    if (found === 'of the backup') expect([...backedUp].filter((key) => !keys.includes(key))).toEqual([]);
    if (found === 'all')
      expect(ledger.requests.filter((each) => acknowledged(each) && !keys.includes(each.key))).toEqual([]);
  },
);

const acknowledged = ({ answers }: { readonly answers: readonly ({ readonly status: number } | undefined)[] }) =>
  answers.some((answer) => answer?.status === 201);

/** Returns the keys of the leads in a file, which are their notes, and the faults of the file. */
function contents(path: string) {
  using database = new DatabaseSync(path);
  const keys = database
    .prepare("SELECT note ->> '$' AS note FROM leads")
    .all()
    .map(({ note }) => `${note}`);
  const faults = database.prepare('PRAGMA integrity_check').all().map(Object.values);
  return { keys, faults };
}
