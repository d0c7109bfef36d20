import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { COLUMNS, CSV_HEADER, formatLeads } from '../../operator/csv-export.ts';
import { IMPORT_FIELDS, readCsvLeads } from '../../operator/csv-import.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import { openStore } from '../../src/store/open-store.ts';
import { exportLeads } from '../../src/usecases/export-leads.ts';
import { BY, aStudio as buildStudio, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { leadsIn } from '../support/exported.ts';
import { commandsIn, runCommands } from '../tools/commands.ts';
import { ROOT, temporaryFolder } from '../tools/processes.ts';

/** Returns a command line on a separate database with a studio, which imports files and reads the leads. */
async function aStudio() {
  const folder = temporaryFolder();
  const env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
  const cli = (...args: string[]) =>
    executed(CLI, args, { env }).then(
      (output) => ({ ...output, status: 0 }),
      ({ code, stdout, stderr }) => ({ status: code as number, stdout: stdout as string, stderr: stderr as string }),
    );
  const store = await openStore(env.DATABASE_URL);
  await store.putStudio(buildStudio({ id: 's1' }), BY);
  await store.close();
  return {
    env,
    /** Imports a file. Returns its counts and the report for each line. */
    async importing(name: string, text: string | Buffer, ...options: string[]) {
      const path = join(folder, name);
      writeFileSync(path, text);
      const { status, stdout, stderr } = await cli('--json', 'leads', 'import', 's1', path, ...options);
      const reports = stderr
        .matchAll(/^line (\d+): (.*)$/gm)
        .map(([, line, report]) => [Number(line), report] as const);
      return { status, stderr, counts: stdout && JSON.parse(stdout), reports: new Map(reports) };
    },
    /** Returns the leads in the order of their names. */
    async leads() {
      const opened = await openStore(env.DATABASE_URL);
      const deps = { store: opened, clock: systemClock, newId };
      const pages = await Array.fromAsync(exportLeads(deps, { studioId: 's1', resumeToken: '' }));
      await opened.close();
      const leads = leadsIn(CSV_HEADER + pages.map((page) => formatLeads(page.leads)).join(''));
      return leads.toSorted((a, b) => (`${a.displayName}` < `${b.displayName}` ? -1 : 1));
    },
    cli,
  };
}

/** Release 1.1 derived these keys, as has each release since. */
const DERIVED_KEYS = [
  '11f59704-8ee7-8742-8195-76a32e1cf4ea',
  'b3ba5a63-b395-8246-83c3-288ca7b9806d',
  '73b59026-8984-8d54-84c7-6c8046c626dd',
];

/** A line that must be refused. */
interface Malformed {
  readonly title: string;
  readonly fault: RegExp;
  /** The cells of the line, or the line itself. */
  readonly csv: Readonly<Record<string, string>> | string;
}

const NOT_TIMES = ['04.05.2024', '2023-02-29', '2024-05-04T10:00:00', ' 2024-05-04'];
const OUT_OF_RANGE = ['1969-12-31', '9999-12-31'];

const MALFORMED: readonly Malformed[] = [
  ...NOT_TIMES.map((createTime) => ({
    title: `createTime ${createTime}`,
    fault: /createTime must be a time with a zone/,
    csv: { createTime },
  })),
  ...OUT_OF_RANGE.map((createTime) => ({
    title: `createTime ${createTime}`,
    fault: /createTime must be a time from/,
    csv: { createTime },
  })),
  { title: 'no contact', fault: /contact must have an email or a phone/, csv: { email: '', phone: '' } },
  {
    title: 'two contacts',
    fault: /both an email address and a phone number/,
    csv: { email: 'two@example.org', phone: '+49 30 123456' },
  },
  ...[
    { displayName: '' },
    { note: 'x'.repeat(2001) },
    { stage: 'sold' },
    { idempotencyKey: 'x' },
    { sourceId: 'x' },
    { displayName: 'A\0B' },
    { createTime: '2024-05-04', updateTime: '2024-05-03' },
  ].map((csv: Record<string, string>) => {
    const [field] = Object.keys(csv).slice(-1);
    return { title: `${field} that breaks a rule`, fault: new RegExp(`${field} must`), csv };
  }),
  { title: 'an unknown source', fault: /^SOURCE_INVALID/, csv: { sourceId: randomUUID() } },
  ...['Ada "the" Countess', '"Ada" Lovelace'].map((name) => ({
    title: name,
    fault: /quote/,
    csv: `,,${name},quote@example.org,,,,,,,`,
  })),
  { title: 'too many cells', fault: /must have 13 cells.*has 14/, csv: ',,Ada,many@example.org,,,Met, Berlin,,,,,,' },
  { title: 'too many empty cells', fault: /must have 13 cells.*has 15/, csv: ',,Ada,many@example.org,,,,,,,,,,,' },
  { title: 'too few cells', fault: /must have 13 cells.*has 4/, csv: ',,Ada,few@example.org' },
];

const quoted = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
const csvLine = (cells: Readonly<Record<string, string>>) =>
  IMPORT_FIELDS.map((field) => quoted(cells[field] ?? '')).join(',');
const aPerson = (name = 'Malformed') => ({ displayName: name, email: `${randomUUID()}@example.org` });

// @proves imports-4
test('a malformed line is reported with its number and field, and other lines are imported', async () => {
  const { importing, leads } = await aStudio();
  const good = (name: string) => csvLine(aPerson(name));
  // Each malformed line is between two good ones.
  const lines = MALFORMED.flatMap(({ csv }, index) => [
    good(`Before ${index}`),
    typeof csv === 'string' ? csv : csvLine({ ...aPerson(), ...csv }),
    good(`Behind ${index}`),
  ]);
  const { reports, counts, status } = await importing('leads.csv', [IMPORT_FIELDS.join(','), ...lines].join('\n'));

  const lineNumber = (index: number) => 3 * index + 3;
  expect([...reports.keys()].toSorted((a, b) => a - b)).toEqual(MALFORMED.map((_, index) => lineNumber(index)));
  for (const [index, { title, fault }] of MALFORMED.entries()) {
    expect({ title, report: reports.get(lineNumber(index)) }).toEqual({ title, report: expect.stringMatching(fault) });
  }
  expect({ counts, status }).toEqual({
    counts: { imported: 2 * MALFORMED.length, alreadyThere: 0, erased: 0, refused: MALFORMED.length },
    status: 1,
  });
  const names = MALFORMED.flatMap((_, index) => [`Before ${index}`, `Behind ${index}`]).toSorted();
  expect((await leads()).map(({ displayName }) => displayName)).toEqual(names);
});

// @proves imports-4
test('a lead is imported exactly as typed', async () => {
  const TIMES = {
    '2024-05-04': '2024-05-04T00:00:00.000Z',
    '2024-02-29': '2024-02-29T00:00:00.000Z',
    '1970-01-01': '1970-01-01T00:00:00.000Z',
    '2024-05-04T10:00:00Z': '2024-05-04T10:00:00.000Z',
    '2024-05-04t10:00:00.5z': '2024-05-04T10:00:00.500Z',
    '2024-05-04T10:00:00.999999999+05:30': '2024-05-04T04:30:00.999Z',
    '2024-05-04T23:59:59.9999-00:00': '2024-05-04T23:59:59.999Z',
    '2024-12-31T23:30:00-01:00': '2025-01-01T00:30:00.000Z',
  };
  const notes = ['a\r\nb', 'a\nb', 'a\rb', '"quoted", and more', '; , \t', ' spaces ', "'90s", 'Zoë 山田 😀'];

  const { importing, leads } = await aStudio();
  const expected = [
    ...Object.entries(TIMES).map(([createTime, time]) => ({
      given: { createTime },
      has: { createTime: time, updateTime: time },
    })),
    ...notes.map((note) => ({ given: { note }, has: { note } })),
  ].map(({ given, has }, index) => ({ given: { ...aPerson(`Ada ${100 + index}`), ...given }, has }));
  const lines = [IMPORT_FIELDS.join(','), ...expected.map(({ given }) => csvLine(given))];
  const { counts, stderr } = await importing('leads.csv', lines.join('\n'));

  expect({ counts, stderr }).toEqual({
    counts: { imported: expected.length, alreadyThere: 0, erased: 0, refused: 0 },
    stderr: '',
  });
  expect(await leads()).toMatchObject(
    expected.map(({ given: { displayName, email }, has }) => ({ displayName, email, stage: 'new', ...has })),
  );
});

// @proves imports-4
describe('a file of CSV', () => {
  test('a CSV file with unclear columns is refused in one sentence, and nothing is written', async () => {
    const { importing, leads } = await aStudio();
    for (const [header, sentence] of [
      ['displayName,email,Company,fax', 'unknown column "Company", "fax"'],
      ['displayName,email,note,email', 'repeated column "email", "email"'],
      ['displayName,,email,note', 'unknown column ""'],
      ['email,note,id,stage', 'missing column displayName'],
      ['displayName,note,id,stage', 'missing column email or phone'],
      ['Ada,ada@example.org,,', 'unknown column "Ada", "ada@example.org"'],
      ['"displayName,email,note,id', 'line 1, the header, has '],
      ['', 'the file is empty'],
    ] as const) {
      const text = header && `${header}\nAda,ada@example.org,,\nGrace,"grace@example.org",,`;
      const { status, stderr, counts } = await importing('leads.csv', text);
      expect({ status, counts, lines: stderr.trim().split('\n').length }).toEqual({ status: 1, counts: '', lines: 1 });
      expect(stderr).toContain(sentence);
    }
    expect(await leads()).toEqual([]);
  });

  test('columns can be renamed or ignored if the CSV file has them', async () => {
    const { importing, leads } = await aStudio();
    const text =
      'First,Last,Mail,phone,a=b,note\nAda,Lovelace,ada@example.org,+49 30 123456,Hello,x\n,Hopper,grace@example.org,,,\n';
    const columns = ['--columns', 'First=displayName', 'Last=displayName', 'Mail=email', 'phone=', 'a=b=note'];
    const absent = await importing('leads.csv', text, ...columns, 'fax=phone');
    expect(absent).toMatchObject({ status: 1, stderr: expect.stringContaining('missing column "fax"') });
    const twice = await importing('leads.csv', text, ...columns);
    expect(twice.stderr).toContain('repeated column "a=b", "note"');
    const { counts, stderr } = await importing('leads.csv', text, ...columns, 'note=');
    expect(counts).toMatchObject({ imported: 2, refused: 0 });
    expect(stderr).toBe('ignored columns: phone, note\n');
    expect(await leads()).toMatchObject([
      { displayName: 'Ada Lovelace', email: 'ada@example.org', note: 'Hello' },
      { displayName: 'Hopper', email: 'grace@example.org' },
    ]);
    for (const option of ['First', 'First=name', '=note']) {
      const refused = await importing('leads.csv', text, '--columns', option);
      expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('must be "heading=field"') });
    }
  });
});

// @proves imports-4
describe('import-leads.md', () => {
  const PAGE = readFileSync(join(ROOT, 'docs/how-to/import-leads.md'), 'utf8');
  const rows = [...PAGE.matchAll(/^\| (\w+)\.csv \| (\d+) \| [^|]+ \| (\w+)[^`|]*(?:`([^`]+)`)?[^|]* \|$/gm)].map(
    ([, crm, line, what, text]) => ({ crm, line: Number(line), what, text }),
  );
  const exports = join(ROOT, 'test/e2e/crm-exports');

  test.each([
    ['hubspot', 'import-hubspot'],
    ['salesforce', 'import-salesforce'],
    ['pipedrive', 'import-pipedrive'],
    ['espocrm', 'import-espocrm'],
  ])('import-leads.md is right about each line of an export of %s', async (crm, mark) => {
    const path = join(exports, `${crm}.csv`);
    const text = readFileSync(path, 'utf8').replace(/^\u{feff}/u, '');
    const { env, leads } = await aStudio();
    const command = commandsIn(PAGE, mark).replace('STUDIO', 's1').replace(`${crm}.csv`, path);
    const { status, stdout, stderr } = await runCommands(command, env);
    const expected = rows.filter((row) => row.crm === crm);

    expect(status).toBe(1);
    const refused = expected.filter(({ what }) => what === 'refused');
    const reports = stderr.matchAll(/^line (\d+): (.*)$/gm).map(([, line, report]) => ({ line: Number(line), report }));
    expect([...reports].toSorted((a, b) => a.line - b.line)).toEqual(
      refused.map(({ line, text }) => ({ line, report: expect.stringContaining(text as string) })),
    );
    const imported = expected.filter(({ what }) => what === 'imported').map(({ text }) => text);
    expect((await leads()).map(({ displayName }) => displayName)).toEqual(imported.toSorted());
    expect(stdout).toMatch(new RegExp(`^imported +${imported.length}$`, 'm'));
    expect(expected.filter(({ what }) => what === 'skipped').length + refused.length + imported.length).toBe(
      expected.length,
    );

    // The table lists every line on which a record begins.
    const continued = crm === 'salesforce' ? [3] : [];
    const lines = text
      .trimEnd()
      .split('\n')
      .map((_, index) => index + 1);
    const listed = rows.filter((row) => row.crm === crm).map(({ line }) => line);
    expect([1, ...listed, ...continued].toSorted((a, b) => a - b)).toEqual(lines);
  });
});

// @proves imports-3
describe('a lead is recognised by its id', () => {
  test('a studio that imports its own export writes nothing', async () => {
    const { importing, leads, cli } = await aStudio();
    const given = times(300, (index) => ({
      ...aPerson(`Ada ${100 + index}`),
      stage: index % 3 === 0 ? 'won' : 'new',
    }));
    await importing('given.csv', [IMPORT_FIELDS.join(','), ...given.map(csvLine)].join('\n'));
    const exported = (await cli('leads', 'export')).stdout;
    const before = await leads();
    const [won, open, ...others] = before.map(({ id }) => String(id));
    for (const id of [won, open]) await cli('leads', 'erase', 's1', String(id));
    await cli('leads', 'stage', 's1', String(others[0]), 'lost');
    const kept = await leads();

    for (const text of [exported, exported.replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, (id) => id.toUpperCase())]) {
      const { counts, status, stderr } = await importing('own.csv', text);
      expect({ counts, status, stderr }).toEqual({
        counts: { imported: 0, alreadyThere: 298, erased: 2, refused: 0 },
        status: 0,
        stderr: '',
      });
    }
    expect(await leads()).toEqual(kept);
  });
});

test('a line without an idempotency key gets the key that earlier releases derived', async () => {
  const reading = { studioId: 's1', fields: new Map(), ignoresOthers: true, onIgnored: () => {} };
  const id = '01900000-0000-7000-8000-000000000001';
  const csv = `id,displayName,email,phone,note,fax\n${id},Ada,a@b.example,,x,1\n,Ada,,'+49 30 1,,\n4711,Ada,a@b.example,,,\n`;
  const lines = await Array.fromAsync(readCsvLeads(Readable.from([Buffer.from(csv)]), reading));
  expect(lines.map((line) => 'lead' in line && line.lead.idempotencyKey)).toEqual(DERIVED_KEYS);
});

test('an export has the same columns as an import', () => {
  expect(IMPORT_FIELDS).toEqual([...COLUMNS, 'idempotencyKey']);
});
