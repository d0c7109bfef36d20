import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  BY,
  DAY_MS,
  keysFor,
  times,
} from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { COMMANDS } from '../support/every-command.ts';
import { PLANTED, temporaryFolder } from '../tools/processes.ts';

// Whatever fails around a command, it prints one sentence, ends with the right status and closes the database.

const [lead, erased] = times(2, () => aLead({ studioId: 's1' })) as [
  ReturnType<typeof aLead>,
  ReturnType<typeof aLead>,
];
const key = anApiKey({ studioId: 's1', memberId: 'member-1', expiresAt: new Date(Date.now() + DAY_MS) });
const source = aLeadSource({ studioId: 's1' });
const CONTACT = JSON.stringify(lead.contact);

interface Row {
  /** The arguments after the command's name, in a folder with the files of `beforeAll`. */
  readonly args: readonly string[];
  readonly input?: string;
  /** Whether it prints nothing on success. */
  readonly isSilent?: true;
  /** Whether it opens the database without writing, and so cannot remove the write-ahead log when it closes it. */
  readonly onlyReads?: true;
  /** Other lines that it may write to standard error. */
  readonly notice?: RegExp;
  /** The status when the reader of its output has gone. No test is run for that if it is undefined. */
  readonly statusWithoutReader?: number;
}

const ROWS: Readonly<Record<string, Row>> = {
  'studios put': { args: ['s1'] },
  'studios try-retention': { args: ['s1', '30'] },
  'studios empty': { args: ['trial'] },
  // With --confirm the command would wait.
  'studios erase': { args: ['s1'], onlyReads: true },
  'studios get': { args: ['s1'] },
  'studios list': { args: [], statusWithoutReader: 0 },
  'members put': { args: ['s1', 'x', '--role', 'staff'] },
  'members remove': { args: ['s1', 'member-1'] },
  'sources put': { args: ['s1', '--name', 'Form'] },
  'sources list': { args: ['s1'] },
  'sources remove': { args: ['s1', source.id] },
  'keys create': { args: ['s1', '--member', 'member-1', '--name', 'Site'], statusWithoutReader: 1 },
  'keys list': { args: ['s1'] },
  'keys ending': { args: ['--days', '366'] },
  'keys replace': { args: ['s1', key.id, '--member', 'member-1'], statusWithoutReader: 1 },
  'keys revoke': { args: ['s1', key.id] },
  'keys find': { args: ['input.txt'] },
  'keys quota': { args: ['s1', key.id, '5'] },
  'leads list': { args: ['s1'] },
  'leads get': { args: ['s1', lead.id] },
  'leads count': { args: ['s1'] },
  'leads events': { args: ['s1', lead.id] },
  'leads export': { args: ['s1'], statusWithoutReader: 0 },
  'leads export-contact': { args: ['s1'], input: CONTACT },
  'leads import': { args: ['s1', 'leads.csv'] },
  'leads stage': { args: ['s1', lead.id, 'won'] },
  'leads find': { args: ['s1'], input: CONTACT },
  'leads erase': { args: ['s1', lead.id] },
  'leads erase-contact': { args: ['s1'], input: CONTACT },
  'erasures export': { args: [], statusWithoutReader: 0 },
  'erasures apply': { args: ['journal'] },
  'callers token': { args: [] },
  'changes watch': { args: [], notice: /^\d leads? waits?, the first since/, statusWithoutReader: 0 },
  'changes resend': { args: ['s1'] },
  restored: { args: [] },
  'consumers create': { args: ['relay', 's1', '--start', 'now'] },
  'consumers list': { args: [] },
  'consumers remove': { args: ['kept'] },
  'consumers set-aside': { args: ['kept', 's1', lead.id, '--reason', 'TOO_LONG'] },
  'consumers list-set-aside': { args: ['kept'] },
  'consumers take-back': { args: ['kept'] },
  'audit show': { args: ['s1'] },
  'audit export': { args: [] },
  requests: { args: ['s1'], notice: /^no request was found/ },
  vacuum: { args: [] },
  backup: { args: ['copy.db'], onlyReads: true, statusWithoutReader: 0 },
  demo: { args: [], statusWithoutReader: 1 },
  doctor: { args: ['core'], onlyReads: true, statusWithoutReader: 0 },
  // No service runs at this address, so the command prints no report.
  verify: { args: ['--base-url', 'http://127.0.0.1:1'], input: 'lik_x', isSilent: true, statusWithoutReader: 2 },
};

let original: string;
beforeAll(async () => {
  original = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  const file = (name: string) => join(original, name);
  const store = await openStore(`sqlite:${file('leads.db')}`);
  await store.putStudio(aStudio({ id: 's1' }), BY);
  await store.putMember(aMember({ studioId: 's1' }), BY);
  await store.putLeadSource(source, BY);
  await store.createApiKey(key, key.createdAt);
  for (const each of [lead, erased]) await store.createLead(each, keysFor(each));
  await store.putStudio(aStudio({ id: 'trial', isTest: true }), BY);
  await store.createConsumer(aConsumer({ name: 'kept', studioIds: ['s1'] }), BY);
  await store.eraseLead({ studioId: 's1', leadId: erased.id, memberId: null, now: new Date() });
  await store.close();
  writeFileSync(file('input.txt'), 'nothing');
  writeFileSync(file('journal'), JSON.stringify({ studioId: 's1', leadId: lead.id }));
  const imported = times(150, (index) => `Ada,a${index}@example.org`);
  writeFileSync(file('leads.csv'), ['displayName,email', ...imported].join('\n'));
});

afterAll(() => rmSync(original, { recursive: true, force: true }));

/** Commands that use no database, or one that may be absent. */
const OFF_DATABASE = ['callers token', 'doctor', 'verify'];

function aFolder(): string {
  const folder = temporaryFolder();
  for (const name of ['leads.db', 'input.txt', 'journal', 'leads.csv']) {
    copyFileSync(join(original, name), join(folder, name));
  }
  writeFileSync(join(folder, 'empty.db'), '');
  return folder;
}

/** Runs a command in a copy of the folder; each write to its standard output fails with `outputFault`. */
async function run(args: readonly string[], { input = '' }: Pick<Row, 'input'>, outputFault?: 'ENOSPC' | 'EPIPE') {
  const folder = aFolder();
  const env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  const outcome = await executed(CLI, args, { env, cwd: folder, input, outputFault }).catch((error) => error);
  return { status: outcome.code ?? 0, stderr: `${outcome.stderr}`, isClosed: !existsSync(`${folder}/leads.db-wal`) };
}

/** Runs a command in its own process, whose standard output is a file descriptor or a closed pipe. */
async function runWithOutput(
  folder: string,
  output: 'pipe' | 'ignore' | number,
  args: readonly string[],
  within: string[] = [],
) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const [command = '', ...words] = [...within, CLI, ...args];
  const env = { PATH, NODE_COMPILE_CACHE, ...PLANTED, DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  const child = spawn(command, words, { cwd: folder, env, stdio: ['ignore', output, 'pipe'] });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => (stderr += text));
  child.stdout?.destroy();
  const [status] = await once(child, 'close');
  return { status, stderr };
}

/** Returns the lines on standard error other than notices. */
function sentencesIn(stderr: string, { notice }: Row): string[] {
  return stderr.split('\n').filter((line) => line !== '' && !notice?.test(line));
}

/** Whether the lines are one sentence. Indented lines below it are details. */
const isOneSentence = (lines: readonly string[]) =>
  lines.filter((line) => !line.startsWith('  ')).length === 1 && !lines.some((line) => /^\s+at |Error: /.test(line));

// @proves commands-1
test('every command has exactly one row', () => {
  expect(Object.keys(ROWS).toSorted()).toEqual(COMMANDS.map(([name]) => name).toSorted());
});

describe.each(COMMANDS)('%s', (name, command) => {
  const row = ROWS[name] as Row;
  const { args, isSilent, onlyReads } = row;
  const all = [...name.split(' '), ...args];

  const { statusWithoutReader } = row;
  // @proves commands-1
  test.runIf(statusWithoutReader !== undefined)('the command ends as expected when its reader has gone', async () => {
    const { status, stderr, isClosed } = await run(all, row, 'EPIPE');
    expect({ status, isClosed: isClosed || onlyReads }).toEqual({ status: statusWithoutReader, isClosed: true });
    const sentences = sentencesIn(stderr, row);
    if (statusWithoutReader === 0) expect(sentences).toEqual([]);
    else if (!isSilent) expect({ sentences, isOne: isOneSentence(sentences) }).toMatchObject({ isOne: true });
  });

  // @proves commands-1
  test.runIf(!isSilent)('the command reports in one sentence that its output cannot be written', async () => {
    const { status, stderr, isClosed } = await run(all, row, 'ENOSPC');
    expect({ status, isClosed: isClosed || onlyReads }).toEqual({ status: 1, isClosed: true });
    const sentences = sentencesIn(stderr, row);
    expect({ sentences, isOne: isOneSentence(sentences) }).toEqual({
      sentences: [expect.stringMatching(/^the standard output: .*ENOSPC/)],
      isOne: true,
    });
  });

  const FILE = /^(?:input\.txt|leads\.csv|journal|copy\.db)$/;
  const namesFile =
    command.registeredArguments.some((argument) => argument.name() === 'file') ||
    command.options.some(({ flags }) => /<(?:file|path)>/.test(flags));
  // @proves commands-1
  test.runIf(namesFile)('the command reports in one sentence that a file is missing', async () => {
    const missing = all.map((word) => (FILE.test(word) ? `/nowhere/${word}` : word));
    const { status, stderr, isClosed } = await run(missing, row);
    const sentences = sentencesIn(stderr, row);
    expect({ status, isClosed: isClosed || onlyReads, isOne: isOneSentence(sentences) }).toEqual({
      status: 1,
      isClosed: true,
      isOne: true,
    });
    expect(sentences[0]).toMatch(/no such file|does not exist|ENOENT/);
  });
});

// @proves commands-1
test.for(['does not exist', 'is empty'])(
  'only studios put and demo create a database in a file that %s',
  async (state) => {
    const created = [];
    for (const [name] of COMMANDS) {
      const { args, input } = ROWS[name] as Row;
      const database = state === 'is empty' ? 'empty.db' : 'absent.db';
      const folder = aFolder();
      const { code: status = 0, stderr } = await executed(CLI, [...name.split(' '), ...args], {
        env: { DATABASE_URL: `sqlite:${join(folder, database)}` },
        ...(input !== undefined && { input }),
        cwd: folder,
      }).catch((error) => error);
      const path = join(folder, database);
      if (statSync(path, { throwIfNoEntry: false })?.size) {
        created.push(name);
        expect(stderr).toBe(`a new database was created: ${path}\n`);
      } else if (!OFF_DATABASE.includes(name)) {
        const expected = `the database file ${path} ${state}: DATABASE_URL names it\n`;
        expect({ name, status, stderr }).toEqual({ name, status: 1, stderr: expected });
      }
    }
    expect(created).toEqual(['studios put', 'demo']);
  },
);

/** The kinds of standard output that accept no data. */
const OUTPUTS: readonly (readonly [output: 'pipe' | 'ignore' | number, within?: string[]])[] = [
  [openSync('/dev/full', 'w')],
  ['pipe'],
  ['ignore'],
  ['pipe', ['sh', '-c', 'exec "$0" "$@" >&-']],
];

// @proves secrets-7
test('a new secret that cannot be written is revoked and reported as lost', async () => {
  for (const [output, within] of OUTPUTS) {
    const folder = aFolder();
    const args = ['keys', 'create', ...(ROWS['keys create'] as Row).args];
    const created = await runWithOutput(folder, output, args, within);
    expect(created.status).toBe(1);
    expect(created.stderr).toMatch(/the key [\da-f-]+ was revoked, because its secret is lost\n$/);
    const store = await openStore(`sqlite:${join(folder, 'leads.db')}`);
    const former = await store.listFormerApiKeys('s1', null, 10);
    const keys = [...(await store.listLiveApiKeys('s1')), ...former.records];
    await store.close();
    expect(keys.filter(({ id, revokedAt }) => id !== key.id && revokedAt === null)).toEqual([]);
    expect(keys).toHaveLength(2);
  }
  const replaced = await run(['keys', 'replace', ...(ROWS['keys replace'] as Row).args], {}, 'ENOSPC');
  const lost = `the new secret of the key ${key.id} is lost, and the old one no longer works: replace it again\n`;
  expect(replaced.stderr).toContain(lost);
});

// @proves commands-1 node-29
test('a command fails if a file takes only the beginning of its output', async () => {
  const folder = aFolder();
  const env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  await executed(CLI, ['leads', 'import', 's1', 'leads.csv'], { env, cwd: folder });
  const command = `${CLI} --json leads list s1 --limit 200`;
  // A limit on the size of each written file; KiB.
  const { stdout } = await executed(
    'bash',
    ['-c', `trap '' XFSZ; ulimit -f 48; ${command} > out 2> errors; echo "status $?"; cat errors`],
    { env: { ...env, NODE_COMPILE_CACHE: '' }, cwd: folder },
  );
  expect(stdout).toMatch(/^status 1\nthe standard output: EFBIG[^\n]*\n$/);
});
