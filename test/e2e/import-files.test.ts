import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { COLUMNS, EXPORT_FORMATS } from '../../operator/export-format.ts';
import { IMPORT_FIELDS, IMPORT_FORMATS } from '../../operator/import-format.ts';

import { newId, systemClock } from '../../src/domain/new-id.ts';
import { openStore } from '../../src/store/open-store.ts';
import { exportLeads } from '../../src/usecases/export-leads.ts';
import { BY, aStudio as buildStudio, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { commandsIn, runCommands } from '../support/examples.ts';
import { ROOT, temporaryFolder } from '../support/processes.ts';

type Json = Readonly<Record<string, unknown>>;

/** The command line on a database of its own with a studio, and what it imports and has. */
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
    /** Imports a file; returns its counts, and what is reported of each line. */
    async importing(name: string, text: string | Buffer, ...options: string[]) {
      const path = join(folder, name);
      writeFileSync(path, text);
      const { status, stdout, stderr } = await cli('--json', 'leads', 'import', 's1', path, ...options);
      const reports = stderr
        .matchAll(/^line (\d+): (.*)$/gm)
        .map(([, line, report]) => [Number(line), report] as const);
      return { status, stderr, counts: stdout && JSON.parse(stdout), reports: new Map(reports) };
    },
    /** Returns the leads in the JSON form of exports, by name. */
    async leads(): Promise<Json[]> {
      const opened = await openStore(env.DATABASE_URL);
      const deps = { store: opened, clock: systemClock, newId };
      const pages = await Array.fromAsync(exportLeads(deps, { studioId: 's1', resumeToken: '' }));
      await opened.close();
      const leads = pages
        .flatMap((page) => EXPORT_FORMATS.ndjson.linesOf(page.leads).split('\n'))
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      return leads.toSorted((a, b) => (a.displayName < b.displayName ? -1 : 1));
    },
    cli,
  };
}

/** Written down from that release. */
const KEYS_OF_1_1 = {
  csv: [
    '11f59704-8ee7-8742-8195-76a32e1cf4ea',
    'b3ba5a63-b395-8246-83c3-288ca7b9806d',
    '73b59026-8984-8d54-84c7-6c8046c626dd',
  ],
  ndjson: [
    '11f59704-8ee7-8742-8195-76a32e1cf4ea',
    '2cecdf0c-0da9-8769-85ac-707f7b176826',
    '73b59026-8984-8d54-84c7-6c8046c626dd',
  ],
};

/** A line that must be refused. */
interface Malformed {
  readonly title: string;
  readonly fault: RegExp;
  /** Its fields in NDJSON, or the line itself. */
  readonly json?: Json | string;
  /** Its cells in CSV, or the line itself. */
  readonly csv?: Readonly<Record<string, string>> | string;
}

const NOT_TIMES = [
  '04.05.2024',
  '2023-02-29',
  '2024-05-04T10:00:00',
  '2024-05-04T24:00:00Z',
  '1714816800',
  ' 2024-05-04',
];
const OUT_OF_RANGE = ['1969-12-31', '9999-12-31'];
const NOT_TEXTS = [0, ['a']];
const TEXTS = IMPORT_FIELDS.filter((field) => field !== 'email' && field !== 'phone');

const MALFORMED: readonly Malformed[] = [
  ...[...NOT_TIMES, ...OUT_OF_RANGE].map((createTime) => ({
    title: `the time ${createTime}`,
    fault: OUT_OF_RANGE.includes(createTime)
      ? /createTime must be a time from/
      : /createTime must be a time with a zone/,
    json: { createTime },
    csv: { createTime },
  })),
  ...TEXTS.flatMap((field) =>
    NOT_TEXTS.map((value) => ({
      title: `${field} of another type`,
      fault: new RegExp(`^${field} must be a string`),
      json: { [field]: value },
    })),
  ),
  ...['email', 'phone'].flatMap((type) =>
    NOT_TEXTS.map((value) => ({
      title: `contact.${type} of another type`,
      fault: new RegExp(`^contact\\.${type} must be a string`),
      json: { contact: { [type]: value } },
    })),
  ),
  ...['ada@example.org', [{ email: 'ada@example.org' }]].map((contact) => ({
    title: 'a contact that is no object',
    fault: /^contact must be an object/,
    json: { contact },
  })),
  {
    title: 'an unknown type of contact',
    fault: /unknown field: fax/,
    json: { contact: { email: 'a@b.example', fax: '1' } },
  },
  ...[{}, { phone: '', email: null }, null].map((contact) => ({
    title: 'no contact',
    fault: /contact must have an email or a phone/,
    json: { contact },
    csv: { email: '', phone: '' },
  })),
  {
    title: 'two contacts',
    fault: /both an e-mail address and a phone number/,
    json: { contact: { email: 'two@example.org', phone: '+49 30 123456' } },
    csv: { email: 'two@example.org', phone: '+49 30 123456' },
  },
  ...[
    { displayName: '' },
    { note: 'x'.repeat(2001) },
    { stage: 'sold' },
    { stage: '' },
    { idempotencyKey: 'x' },
    { idempotencyKey: '' },
    { sourceId: 'x' },
    { displayName: 'A\0B' },
    { createTime: '2024-05-04', updateTime: '2024-05-03' },
  ].map((fields: Record<string, string>) => {
    const [field] = Object.keys(fields).slice(-1);
    return {
      title: `${field} that breaks a rule`,
      fault: new RegExp(`${field} must`),
      json: fields,
      // An empty cell is absent.
      ...((fields[field as string] !== '' || field === 'displayName') && { csv: fields }),
    };
  }),
  {
    title: 'an unknown source',
    fault: /^SOURCE_INVALID/,
    json: { sourceId: randomUUID() },
    csv: { sourceId: randomUUID() },
  },
  { title: 'an empty id', fault: /^id must not be empty/, json: { id: '' } },
  { title: 'an unknown field', fault: /unknown fields: company, fax$/, json: { company: 'X', fax: 1 } },
  ...['null', '[{"displayName":"Ada"}]', '{"displayName":"Ada"', '{}{}'].map((json) => ({
    title: json,
    fault: /is not a JSON object/,
    json,
  })),
  {
    title: 'a field twice',
    fault: /has a field twice/,
    json: '{"displayName":"A","contact":{"email":"a@b.example","email":"c@d.example"}}',
  },
  { title: 'a quote within a cell', fault: /quote/, csv: ',,Ada "the" Countess,quote@example.org,,,,,,,' },
  { title: 'too many cells', fault: /must have 11 cells.*has 12/, csv: ',,Ada,many@example.org,,,Met, Berlin,,,,' },
  { title: 'too few cells', fault: /must have 11 cells.*has 4/, csv: ',,Ada,few@example.org' },
];

const quoted = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
const csvLine = (cells: Readonly<Record<string, string>>) =>
  IMPORT_FIELDS.map((field) => quoted(cells[field] ?? '')).join(',');
const aPerson = (name = 'Malformed') => ({ displayName: name, email: `${randomUUID()}@example.org` });

// @proves imports-4
describe('a malformed line is reported with its number and field, and nothing else happens:', () => {
  const ndjson = ({ email, ...fields }: Json) => JSON.stringify({ contact: { email }, ...fields });
  const lineIn = {
    ndjson: ({ json }: Malformed) => (typeof json === 'object' ? ndjson({ ...aPerson(), ...json }) : json),
    csv: ({ csv }: Malformed) => (typeof csv === 'object' ? csvLine({ ...aPerson(), ...csv }) : csv),
  };

  test.each([
    ['ndjson', [], (name: string) => ndjson(aPerson(name))],
    ['csv', [IMPORT_FIELDS.join(',')], (name: string) => csvLine(aPerson(name))],
  ] as const)('%s', async (format, header, good) => {
    const { importing, leads } = await aStudio();
    const lines = MALFORMED.flatMap((each) => {
      const line = lineIn[format](each);
      return line === undefined ? [] : [{ ...each, line }];
    });
    // Each has a good one before and behind it.
    const file = lines.flatMap(({ line }, index) => [good(`Before ${index}`), line, good(`Behind ${index}`)]);
    const { reports, counts, status } = await importing(`leads.${format}`, [...header, ...file].join('\n'));

    const numberOf = (index: number) => header.length + 3 * index + 2;
    expect([...reports.keys()].toSorted((a, b) => a - b)).toEqual(lines.map((_, index) => numberOf(index)));
    for (const [index, { title, fault }] of lines.entries()) {
      expect({ title, report: reports.get(numberOf(index)) }).toEqual({ title, report: expect.stringMatching(fault) });
    }
    expect({ counts, status }).toEqual({
      counts: { imported: 2 * lines.length, alreadyThere: 0, erased: 0, refused: lines.length },
      status: 1,
    });
    const names = lines.flatMap((_, index) => [`Before ${index}`, `Behind ${index}`]).toSorted();
    expect((await leads()).map(({ displayName }) => displayName)).toEqual(names);
  });
});

// @proves imports-4
describe('a lead is imported exactly as it is typed:', () => {
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

  test.each(['ndjson', 'csv'] as const)('%s', async (format) => {
    const { importing, leads } = await aStudio();
    const expected = [
      ...Object.entries(TIMES).map(([createTime, time]) => ({
        given: { createTime },
        has: { createTime: time, updateTime: time },
      })),
      ...notes.map((note) => ({ given: { note }, has: { note } })),
    ].map(({ given, has }, index) => ({ given: { ...aPerson(`Ada ${100 + index}`), ...given }, has }));
    const ndjson = expected.map(({ given: { email, ...fields } }, index) => {
      const absent = [{ phone: null }, { phone: '' }, {}][index % 3];
      return JSON.stringify({ idempotencyKey: null, sourceId: null, ...fields, contact: { ...absent, email } });
    });
    const csv = [IMPORT_FIELDS.join(','), ...expected.map(({ given }) => csvLine(given))];
    const { counts, stderr } = await importing(`leads.${format}`, (format === 'csv' ? csv : ndjson).join('\n'));

    expect({ counts, stderr }).toEqual({
      counts: { imported: expected.length, alreadyThere: 0, erased: 0, refused: 0 },
      stderr: '',
    });
    expect(await leads()).toMatchObject(
      expected.map(({ given: { displayName, email }, has }) => ({
        displayName,
        contact: { email },
        stage: 'LEAD_STAGE_NEW',
        ...has,
      })),
    );
  });
});

// @proves imports-4
describe('a file of CSV', () => {
  test('whose columns are unclear is refused in one sentence, before anything is written', async () => {
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

  test('has other columns named or ignored, and none that it does not have', async () => {
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
      { displayName: 'Ada Lovelace', contact: { email: 'ada@example.org' }, note: 'Hello' },
      { displayName: 'Hopper', contact: { email: 'grace@example.org' } },
    ]);
    for (const option of ['First', 'First=name', '=note']) {
      const refused = await importing('leads.csv', text, '--columns', option);
      expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('must be "heading=field"') });
    }
    const other = await importing('leads.ndjson', '', '--ignore-other-columns');
    expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining('are for CSV') });
  });
});

// @proves imports-4
describe('import-leads.md says what becomes of each line of', () => {
  const PAGE = readFileSync(join(ROOT, 'docs/how-to/import-leads.md'), 'utf8');
  const rows = [...PAGE.matchAll(/^\| (\w+)\.csv \| (\d+) \| [^|]+ \| (\w+)[^`|]*(?:`([^`]+)`)?[^|]* \|$/gm)].map(
    ([, crm, line, what, text]) => ({ crm, line: Number(line), what, text }),
  );

  test.each(['import-hubspot', 'import-salesforce', 'import-pipedrive', 'import-espocrm'])('%s', async (mark) => {
    const crm = mark.slice('import-'.length);
    const path = join(ROOT, 'test/e2e/crm-exports', `${crm}.csv`);
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

    // Every line that a record begins on is in the table.
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
describe('a lead is recognised by its id, so a studio that imports its own export writes nothing:', () => {
  test.each(['ndjson', 'csv'] as const)('%s', async (format) => {
    const { importing, leads, cli } = await aStudio();
    const given = times(300, (index) => ({
      ...aPerson(`Ada ${100 + index}`),
      stage: index % 3 === 0 ? 'won' : 'new',
    }));
    await importing('given.csv', [IMPORT_FIELDS.join(','), ...given.map(csvLine)].join('\n'));
    const exported = (await cli('leads', 'export', '--format', format)).stdout;
    const before = await leads();
    const [won, open, ...others] = before.map(({ id }) => String(id));
    for (const id of [won, open]) await cli('leads', 'erase', 's1', String(id));
    await cli('leads', 'stage', 's1', String(others[0]), 'lost');
    const kept = await leads();

    for (const text of [exported, exported.replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, (id) => id.toUpperCase())]) {
      const { counts, status, stderr } = await importing(`own.${format}`, text);
      expect({ counts, status, stderr }).toEqual({
        counts: { imported: 0, alreadyThere: 298, erased: 2, refused: 0 },
        status: 0,
        stderr: '',
      });
    }
    expect(await leads()).toEqual(kept);

    // In another studio they are other leads, once, also after half of them.
    const other = await aStudio();
    const half = exported
      .split(/(?<=\n)/)
      .slice(0, 150)
      .join('');
    expect((await other.importing(`other.${format}`, half)).counts).toMatchObject({ refused: 0 });
    const { counts } = await other.importing(`other.${format}`, exported);
    expect({ all: counts.imported + counts.alreadyThere, refused: counts.refused }).toEqual({ all: 300, refused: 0 });
    const [first] = await other.leads();
    await other.cli('leads', 'erase', 's1', String(first?.id));
    const again = await other.importing(`other.${format}`, exported);
    expect(again).toMatchObject({ counts: { imported: 0, alreadyThere: 299, erased: 1, refused: 0 }, status: 0 });
    expect(await other.leads()).toHaveLength(299);
  });
});

test('a line without an idempotency key has that which release 1.1 derived', async () => {
  const reading = { studioId: 's1', fields: new Map(), ignoresOthers: true, onIgnored: () => {} };
  const keys = async (format: keyof typeof IMPORT_FORMATS, text: string) => {
    const lines = await Array.fromAsync(IMPORT_FORMATS[format](Readable.from([Buffer.from(text)]), reading));
    return lines.map((line) => 'lead' in line && line.lead.idempotencyKey);
  };
  const id = '01900000-0000-7000-8000-000000000001';
  const csv = `id,displayName,email,phone,note,fax\n${id},Ada,a@b.example,,x,1\n,Ada,,'+49 30 1,,\n4711,Ada,a@b.example,,,\n`;
  expect(await keys('csv', csv)).toEqual(KEYS_OF_1_1.csv);
  const ndjson = [
    { id, displayName: 'Ada', contact: { email: 'a@b.example' } },
    { displayName: 'Ada', contact: { phone: '+49 30 1' }, note: null },
    { id: '4711', displayName: 'Ada', contact: { email: 'a@b.example' } },
  ];
  const expected = await keys('ndjson', ndjson.map((line) => JSON.stringify(line)).join('\n'));
  expect(expected).toEqual(KEYS_OF_1_1.ndjson);
  // What is one in a contact and a key is one in what is derived from them, too.
  const absent = { displayName: 'Ada', contact: { phone: '+49 30 1', email: '' }, note: null, idempotencyKey: null };
  expect(await keys('ndjson', JSON.stringify(absent))).toEqual([KEYS_OF_1_1.ndjson[1]]);
});

test('the columns of an export are those of an import', () => {
  expect(IMPORT_FIELDS).toEqual([...COLUMNS, 'idempotencyKey']);
});
