import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import { openStore } from '../../src/store/open-store.ts';
import { aLead, aStudio, BY, claimsOf, HARD_TEXTS, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { bash } from '../support/processes.ts';

const LEADS = 1000;

// Shared by all tests, which only read it.
let folder: string;
let env: { DATABASE_URL: string };
let leads: Lead[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  const store = await openStore(env.DATABASE_URL);
  await store.putStudio(aStudio({ id: 's2' }), BY);
  await store.putStudio(aStudio({ id: 's1', status: 'suspended' }), BY);
  const texts = Object.values(HARD_TEXTS);
  leads = times(LEADS, (index) =>
    aLead({ studioId: index < LEADS / 2 ? 's1' : 's2', note: texts[index % texts.length] as string }),
  );
  await Promise.all(leads.map((lead) => store.createLead(lead, claimsOf(lead))));
  await store.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command to its end; returns its status, and both outputs as one text. */
async function ended(command: string, ...args: string[]): Promise<{ status: number; output: string }> {
  const { code = 0, stdout, stderr } = await executed(command, args, { env }).catch((error) => error);
  return { status: code, output: stderr + stdout };
}

/** Runs the command line. */
const cli = (...args: string[]) => ended(CLI, ...args);

const idsIn = (ndjson: string) =>
  ndjson
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).id);
const idsOf = (of: readonly Lead[]) => of.map(({ id }) => id);

test('an operator lists studios and the newest leads of one, and reads a lead', async () => {
  const json = async (...args: string[]) => JSON.parse((await cli('--json', ...args)).output);
  expect(await json('studios', 'list')).toEqual([
    { id: 's1', status: 'suspended', regionCode: null, quotaLimit: null },
    { id: 's2', status: 'active', regionCode: null, quotaLimit: null },
  ]);
  const newest = leads.toReversed();
  expect(idsOf(await json('leads', 'list', '--studio', 's2'))).toEqual(idsOf(newest.slice(0, 25)));
  const listed = await json('leads', 'list', '--studio', 's2', '--limit', '230');
  expect(listed).toEqual(JSON.parse(JSON.stringify(newest.slice(0, 230))));
  const [lead] = newest as [Lead];
  expect(await json('leads', 'get', '--studio', 's2', lead.id)).toEqual(JSON.parse(JSON.stringify(lead)));

  const shown = (await cli('leads', 'list', '--studio', 's2', '--limit', '1')).output;
  for (const text of [lead.id, lead.displayName, lead.contact.value, 'new']) expect(shown).toContain(text);
  expect((await cli('studios', 'list')).output).toMatch(/s1.*suspended.*s2.*active/s);
  expect((await cli('leads', 'get', '--studio', 's2', lead.id)).output).toContain(
    `contact      email ${lead.contact.value}`,
  );
});

test('all leads are exported to standard output, and to a file whose export is interrupted and resumed', async () => {
  expect(idsIn((await cli('leads', 'export')).output)).toEqual(idsOf(leads));
  expect(idsIn((await cli('leads', 'export', '--studio', 's2')).output)).toEqual(idsOf(leads.slice(LEADS / 2)));

  const path = join(folder, 'out.csv');
  const toFile = ['leads', 'export', '--format', 'csv', '--output', path];
  expect(await cli(...toFile)).toEqual({ status: 0, output: '' });
  const whole = readFileSync(path, 'utf8');
  expect(await bash(`truncate -s 100001 ${path}`)).toBe('');
  expect(await cli(...toFile, '--resume')).toEqual({ status: 0, output: '' });
  expect(readFileSync(path, 'utf8')).toBe(whole);
  expect((await cli('leads', 'export', '--format', 'csv')).output).toBe(whole);
});

test.each([
  ['an unknown studio', ['leads', 'export', '--studio', 's3', '--output', 'unwritten'], 'STUDIO_NOT_FOUND'],
  ['two positions to resume from', ['leads', 'export', '--resume', '--resume-from', 'x'], 'cannot be used with'],
  ['an unknown format', ['leads', 'export', '--format', 'xlsx'], 'ndjson, csv'],
  [
    'a lead of another studio',
    ['leads', 'get', '--studio', 's1', '01890a5d-ac96-774b-bcce-b302099a8057'],
    'LEAD_NOT_FOUND',
  ],
])('%s: is refused with status 1', async (_, args, message) => {
  const { status, output } = await cli(...args);

  expect(status).toBe(1);
  expect(output).toContain(message);
});
