import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { describeWithTools } from '../../test/tools/commands.ts';
import { ROOT } from '../../test/tools/processes.ts';
import { CAPTURE_RULES } from '../capture-rules.ts';
import formKeys from '../conformance/form-keys.json' with { type: 'json' };
import { unknownKey } from './support/key-secret.ts';
import { PYTHON_TOOL, pythonForTests } from './support/python.ts';

const page = readFileSync(join(ROOT, 'gateway/docs/pages/clients.md'), 'utf8');
const program = (section: string, language: string) =>
  new RegExp(`## ${section}\n[^]*?\`\`\`${language}\n([^]*?)\`\`\``).exec(page)?.[1] ?? '';

describe('the table of clients', () => {
  const section = page.split(/^## /m).find((each) => each.startsWith('What each has')) ?? '';
  const [heads = [], , ...rows] = section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').slice(1, -1));
  const sources = (pattern: string) =>
    globSync(pattern, { cwd: join(ROOT, 'sdk') })
      .map((file) => readFileSync(join(ROOT, 'sdk', file), 'utf8'))
      .join('\n');
  const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

  test('the clients page says what each fault code means', () => {
    const codes = Object.values(CAPTURE_RULES).flatMap((rules) => rules.map(([, , code]) => `\`${code}\``));
    expect(codes.filter((code) => !page.includes(code))).toEqual([]);
  });

  // @proves clients-11
  test('the clients page shows form keys of the conformance suite', () => {
    const [first, later] = [formKeys[0], formKeys.find(({ name }) => name === 'an hour later')];
    expect(page).toContain(`| \`${JSON.stringify(first?.capture)}\` | \`${first?.key}\` |`);
    expect(page).toContain(`| the same | \`${later?.key}\` |`);
  });

  test.each([
    ['TypeScript', 1, sources('{*.ts,package.json,outbox/*.ts}'), ['for await']],
    [
      'PHP',
      2,
      sources('php/{composer.json,src/**/*.php}'),
      ['foreach', 'LeadCapture::faults', 'LeadIntakeClient::check'],
    ],
    [
      'Python',
      3,
      sources('python/{pyproject.toml,src/**/*.py}'),
      ['for', 'LeadCapture.faults', 'LeadIntakeClient.check'],
    ],
  ])('the clients table has only names of the %s client, and all its errors', (language, column, source, others) => {
    expect(heads[column]?.trim()).toBe(language);
    const names = rows.flatMap((row) => namesIn(row[column] ?? ''));
    const own = names.filter((name) => !others.includes(name));
    expect(own.filter((name) => !new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(source))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(others));
    const errors = [...source.matchAll(/^(?:export |final |abstract )*class (\w+(?:Error|Exception))\b/gm)];
    const published = errors.map(([, name]) => name).filter((name) => !/^(?:Outbox|Transport|NotAn)/.test(name ?? ''));
    expect(published.length).toBe(5);
    expect(names).toEqual(expect.arrayContaining(published));
  });
});

const json = 'application/json';
const problem = { type: 'about:blank', title: 'Later', status: 503, code: 'integration_unavailable', requestId: 'one' };
const invalid = { ...problem, code: 'integration_invalid_request', fields: { displayName: ['must be a string'] } };
const noLeads = '{"leads":[],"nextCursor":null}';

interface Shown {
  /** The section of the page. */
  readonly section: string;
  /** The server's responses, in order: status, headers, body. */
  readonly answers: readonly (readonly [number, OutgoingHttpHeaders, string])[];
  /** The output of each program. NONE stands for a missing value, which each language prints in its own way. */
  readonly printed: readonly string[];
}

const SHOWN: readonly Shown[] = [
  {
    section: 'Before the first lead',
    answers: [
      [200, { 'content-type': json, date: new Date().toUTCString() }, noLeads],
      [400, { 'content-type': 'application/problem+json' }, JSON.stringify(invalid)],
    ],
    printed: [
      'address: right. The service answers at the address.',
      'key: right. The service accepts the key.',
      'leads.create: right. The key may create leads (leads.create).',
      'leads.read: right. The key may read leads (leads.read).',
      'clock: right. The clock agrees with that of the service.',
    ],
  },
  {
    section: 'After each attempt',
    answers: [
      [503, { 'content-type': 'application/problem+json', 'x-request-id': 'one' }, JSON.stringify(problem)],
      [502, { 'content-type': 'text/html' }, '<h1>Bad Gateway</h1>'],
      [200, { 'content-type': json, 'x-request-id': 'three', ratelimit: '"default";r=41;t=9' }, noLeads],
    ],
    printed: [
      'attempt 1: 503 integration_unavailable, request one, NONE left',
      'attempt 2: 502, not of the service, request NONE, NONE left',
      'attempt 3: ok, request three, 41 left',
    ],
  },
  {
    section: 'Cancel a call',
    answers: [[200, { 'content-type': json, 'x-request-id': 'one', ratelimit: '"default";r=41;t=9' }, noLeads]],
    printed: ['attempt 1: ok, request one, 41 left'],
  },
];

// @proves clients-8
describe.each(SHOWN)('the programs of "$section"', ({ section, answers, printed }) => {
  /** Returns the section's program with the client that it needs, and with a call if it has none. */
  const whole = (language: string, call: string) => {
    if (section === 'Before the first lead') return program(section, language);
    const client = program('After each attempt', language);
    return `${client}\n${section === 'After each attempt' ? call : program(section, language)}`;
  };

  async function expectOutput(command: string, args: readonly string[], none: string): Promise<void> {
    const rest = [...answers];
    const server = createServer((_, response) => {
      const [status, headers, body] = rest.shift() ?? [404, {}, ''];
      response.writeHead(status, headers).end(body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { PATH: process.env.PATH, LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: unknownKey() };
    const { stdout } = await promisify(execFile)(command, args, { cwd: ROOT, env }).finally(() => server.close());
    expect(stdout.trim().split('\n')).toEqual(printed.map((line) => line.replaceAll('NONE', none)));
  }

  test(`the TypeScript program of "${section}" prints the expected lines`, async () => {
    const source = whole('js', 'await leads.listLeads();').replaceAll('{{npmName}}', './sdk/index.ts');
    await expectOutput(process.execPath, ['--input-type=module', '-e', source], 'undefined');
  });

  describeWithTools([`php -r 'curl_init();'`], 'in PHP', () => {
    test(`the PHP program of "${section}" prints the expected lines`, async () => {
      const load = `spl_autoload_register(fn ($class) => require 'sdk/php/src/' . strtr(substr($class, 11), '\\\\', '/') . '.php');`;
      const source = whole('php', '$leads->listLeads();').replaceAll("require 'vendor/autoload.php';", '');
      await expectOutput('php', ['-r', `${load}\n${source}`], '');
    });
  });

  describeWithTools([PYTHON_TOOL], 'in Python', () => {
    test(`the Python program of "${section}" prints the expected lines`, async () => {
      const python = join(await pythonForTests(), 'python');
      await expectOutput(python, ['-c', whole('python', 'leads.list_leads()')], 'None');
    });
  });
});
