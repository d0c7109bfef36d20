import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { PACKAGE_SETTINGS } from '../../common/package-settings.ts';
import { describeWithTools, findExample } from '../../test/tools/commands.ts';
import { ROOT, watch } from '../../test/tools/processes.ts';
import { aServedService } from '../../test/tools/served-service.ts';
import { freePort } from '../../test/tools/servers.ts';
import { VERSION } from '../packages/build-packages.ts';
import { PACKAGERS } from '../packages/sources.ts';
import { OLDEST_TSC, RUNTIME } from './support/javascript-runtimes.ts';
import { codeSamplesIn } from './support/openapi.ts';
import { expectPage } from './support/outbox-page.ts';
import { queryFile } from './support/website-databases.ts';

const run = promisify(execFile);
const tsc = join(ROOT, 'node_modules/.bin/tsc');

/** The compiler options of a website. */
const CHECK = [
  ...['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'],
  ...['--typeRoots', join(ROOT, 'node_modules/@types')],
];

/** Matches compiler output that reports only the fault in that line of `wrong.ts`. */
const onlyWrong = (line: number) => ({
  stdout: expect.stringMatching(new RegExp(`^wrong\\.ts\\(${line},.*(?:\\n +.*)*"fax".*(?:\\n +.*)*\\n$`)),
});

const service = aServedService();

/** The PATH without this project's node_modules: a website's server uses the machine's own Node and npm. */
const ownPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

let folder: string;
let website: string;
const write = (file: string, text: string) => writeFileSync(join(website, file), text);

const options = () => ({ cwd: website, env: { ...process.env, PATH: ownPath } });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  website = join(folder, 'website');
  mkdirSync(website);
  const tarball = join(website, 'client.tgz');
  writeFileSync(tarball, PACKAGERS.npm(PACKAGE_SETTINGS, VERSION).archive);
  write('package.json', '{ "type": "module" }');
  await run('npm', ['install', '--offline', '--no-audit', '--silent', tarball], options());
});
afterAll(() => rmSync(folder, { recursive: true }));

// @proves leads-23
test('the npm package runs its README example in JavaScript, and its types find a fault', async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const options = {
    cwd: website,
    env: { ...process.env, PATH: ownPath, LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret },
  };
  const installed = globSync('**/*.js', { cwd: join(website, 'node_modules/lead-intake-sdk') });
  expect(new Set(installed.map(dirname))).toEqual(new Set(['dist', 'dist/outbox', 'dist/cjs', 'dist/cjs/outbox']));
  const example = findExample('sdk/README.md', 'example');
  write('example.js', example);
  write(
    'visit.js',
    `import { names, onContactForm } from './example.js';
    const key = crypto.randomUUID();
    const keep = (note) => console.log('kept: ' + note);
    for (const each of [key, key, crypto.randomUUID()])
      console.log(await onContactForm('Grace', 'grace@example.com', 'A trial, please.', each, keep));
    console.log((await names()).join());`,
  );
  const { stdout } = await run('node', ['visit.js'], options);

  const [first = '', ...others] = stdout.trim().split('\n');
  const [, id] = /^lead (\S+)$/.exec(first) ?? [];
  expect(others).toEqual([`lead ${id}`, 'kept: A trial, please.', `open already: ${id}`, 'Grace']);
  expect(await service.countLeads(studioId)).toBe(1);

  write(
    'example.ts',
    example.replace(
      'displayName, email, note, idempotencyKey, keepNote',
      'displayName: string, email: string, note: string, idempotencyKey: string, keepNote: (note: string) => unknown',
    ),
  );
  write(
    'wrong.ts',
    `import { createLeadIntakeClient } from 'lead-intake-sdk';
    const client = createLeadIntakeClient({ baseUrl: '', apiKey: '' });
    await client.createLead({ displayName: 'Grace', contact: { type: 'fax', value: '1' } });`,
  );
  await expect(run(tsc, [...CHECK, 'example.ts', 'wrong.ts'], options)).rejects.toMatchObject(onlyWrong(3));
});

// @proves clients-1
test('the npm package runs and type-checks the sample of each operation in the API reference', async () => {
  const { secret } = await service.aStudioWithKey();
  const env = { PATH: ownPath, LEAD_INTAKE_KEY: secret };
  const samples = codeSamplesIn('javascript', service.url);
  const runSample = async (name: string, source: string) => {
    for (const ending of ['js', 'ts']) write(`${name}.${ending}`, source);
    return (await run('node', [`${name}.js`], { cwd: website, env })).stdout.trim();
  };
  const id = await runSample('create', samples.create);
  expect(await runSample('read', samples.read(id))).toBe('new');
  expect(await runSample('list', samples.list)).toBe('Grace Hopper');
  await run(tsc, [...CHECK, 'create.ts', 'read.ts', 'list.ts'], { cwd: website });
});

// @proves leads-23 clients-14
test('the outbox examples of the README and the docs page work, from the form to the worker', async ({
  onTestFinished,
}) => {
  const { studioId, secret } = await service.aStudioWithKey();
  const database = join(website, 'website.db');
  const env = { PATH: ownPath, LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret, WEBSITE_DATABASE: database };
  for (const name of ['website', 'form', 'worker', 'attention', 'now']) {
    write(`${name === 'worker' ? 'send-leads' : name}.js`, findExample('sdk/README.md', `outbox-${name}`));
  }
  // The other files of a TypeScript website are TypeScript, too.
  const plain = findExample('sdk/README.md', 'outbox-form').split('\n');
  const typed = findExample('sdk/README.md', 'outbox-form-types').trimEnd().split('\n');
  const beginning = (line: string) => line.slice(0, '  const capture'.length);
  write('form.ts', plain.map((line) => typed.find((each) => beginning(each) === beginning(line)) ?? line).join('\n'));
  for (const name of ['website', 'send-leads', 'attention', 'now']) {
    write(`${name}.ts`, readFileSync(join(website, `${name}.js`), 'utf8'));
  }
  await run(tsc, [...CHECK, 'form.ts', 'website.ts', 'send-leads.ts', 'attention.ts', 'now.ts'], { cwd: website });
  write(
    'visits.js',
    `import { onContactForm } from './form.js';
    import { sendNow } from './now.js';
    import { database, outbox } from './website.js';
    const grace = { name: 'Grace', email: 'grace@example.com', note: 'Asks for a trial.' };
    const formKey = crypto.randomUUID();
    // A double click, followed by a return to the form with an address that the service would refuse.
    const faults = [
      onContactForm({ formKey, ...grace }),
      onContactForm({ formKey, ...grace }),
      onContactForm({ formKey, ...grace, email: 'nowhere' }),
      // An empty message.
      onContactForm({ formKey, name: 'Eve', email: 'eve@example.com', note: '' }),
      // A double click on a page without a hidden field.
      onContactForm({ name: 'Joan', email: 'joan@example.com', note: '' }),
      onContactForm({ formKey: '', name: 'Joan', email: 'joan@example.com', note: '' }),
    ];
    // Without a key no client can be created, but nothing is thrown. Then the first lead is sent.
    const { LEAD_INTAKE_KEY } = process.env;
    for (const key of ['', LEAD_INTAKE_KEY]) {
      process.env.LEAD_INTAKE_KEY = key;
      await sendNow();
    }
    console.log(JSON.stringify(faults.map((each) => Object.keys(each))));
    outbox.add(database, { displayName: 'Ada', contact: { type: 'email', value: 'nowhere' } });`,
  );
  // The outbox needs node:sqlite, and thus a newer Node than the rest of the package.
  const { stdout: faults } = await run(process.execPath, [join(website, 'visits.js')], { cwd: tmpdir(), env });
  expect(JSON.parse(faults)).toEqual([[], [], ['contact.value'], [], [], []]);
  expect(await service.countLeads(studioId)).toBe(1);
  const worker = watch(
    spawn(process.execPath, ['send-leads.js'], { cwd: website, env, stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  onTestFinished(() => worker.kill());
  const attention = async () => (await run(process.execPath, ['attention.js'], { cwd: website, env })).stdout;
  while (!(await attention()).startsWith('1 ')) expect(worker.child.exitCode, worker.output()).toBeNull();
  expect(await attention()).toMatch(/^[\da-f-]{36} refused since .+Z: 400 integration_invalid_request: /m);
  while ((await service.countLeads(studioId)) < 3) expect(worker.child.exitCode, worker.output()).toBeNull();
  worker.child.kill('SIGTERM');
  expect(await worker.ended(), worker.output()).toBe(0);

  // The docs page shows the same program in one file.
  const shownPage = await (await fetch(`${service.url}/docs/outbox.md`)).text();
  const [, page = ''] = /```js\n([\s\S]*?)```/.exec(shownPage) ?? [];
  write('page.js', page);
  write(
    'visit-page.js',
    `import { onContactForm, work } from './page.js';
    const ada = { formKey: crypto.randomUUID(), name: 'Ada', note: '' };
    const faults = [onContactForm({ ...ada, email: 'ada@example.com' }), onContactForm({ ...ada, email: 'ada' })];
    console.log(JSON.stringify(faults.map((each) => Object.keys(each))));
    const stop = new AbortController();
    setTimeout(() => stop.abort());
    await work(stop.signal);`,
  );
  const { stdout: shown } = await run(process.execPath, ['visit-page.js'], { cwd: website, env });
  expect(JSON.parse(shown)).toEqual([[], ['contact.value']]);
  expect(await service.countLeads(studioId)).toBe(4);

  const sql = `import { createOutbox } from 'lead-intake-sdk/outbox'; console.log(createOutbox({ table: 'leads' }).setUpSql());`;
  write('sql.js', sql);
  expect((await run('node', ['sql.js'], { cwd: website, env })).stdout).toContain('CREATE TABLE IF NOT EXISTS leads (');
});

/** A program with Node's own server in place of Express. Both give a handler the same request and response. */
const NODE_SERVER = `import { createServer } from 'node:http';
  import { leadsPage } from './office.js';
  createServer(leadsPage).listen(process.env.PORT);`;

// @proves page-4
test.each([
  ["Node's own server, as Express calls it", () => NODE_SERVER],
  ['Fastify', () => findExample('sdk/README.md', 'outbox-page-fastify')],
])('the page does what the README shows, on %s', async (title, server) => {
  const { secret } = await service.aStudioWithKey();
  const [database, port] = [join(website, `${title}.db`), await freePort()];
  const env = {
    ...{ PATH: ownPath, LEAD_INTAKE_URL: service.url, LEAD_INTAKE_READ_KEY: secret, LEAD_INTAKE_KEY: secret },
    ...{ WEBSITE_DATABASE: database, PORT: `${port}`, OFFICE_PASSWORD: 'of the office: ä' },
  };
  write('website.js', findExample('sdk/README.md', 'outbox-website'));
  write('office.js', findExample('sdk/README.md', 'outbox-page'));
  write(`${title}.js`, server());
  const fastify = join(website, 'node_modules/fastify');
  rmSync(fastify, { force: true });
  symlinkSync(join(ROOT, 'node_modules/fastify'), fastify);
  const store = `import { createLeadIntakeClient } from 'lead-intake-sdk';
    import { database, outbox } from './website.js';
    outbox.add(database, { displayName: 'Ada', contact: { type: 'email', value: 'nowhere' } });
    const { LEAD_INTAKE_URL: baseUrl, LEAD_INTAKE_KEY: apiKey } = process.env;
    await outbox.deliver(database, createLeadIntakeClient({ baseUrl, apiKey }));`;
  write('store.js', store);
  await run(process.execPath, ['store.js'], { cwd: website, env });
  const start = (own: object) =>
    watch(
      spawn(process.execPath, ['--disable-warning=ExperimentalWarning', `${title}.js`], {
        ...{ cwd: website, env: { ...env, ...own }, stdio: ['ignore', 'pipe', 'pipe'] },
      }),
    );
  const url = `http://127.0.0.1:${port}/office/leads`;
  const open = start({ OFFICE_PASSWORD: '', LEAD_INTAKE_URL: '' });
  onTestFinished(() => open.kill());
  const refused = await vi.waitFor(() => fetch(url), { timeout: 60_000 });
  expect([refused.status, await refused.text()]).toEqual([503, 'OFFICE_PASSWORD must be set.']);
  open.kill();
  await open.ended();
  const running = start({});
  onTestFinished(() => running.kill());
  await vi.waitFor(() => fetch(url), { timeout: 60_000 });
  // The handler checks the password before it reads the body, so it does not wait for the rest of it.
  const length = { 'content-length': '1000', 'content-type': 'application/json' };
  const early = request(url, { method: 'POST', headers: length });
  early.on('error', () => {});
  early.write('{');
  const [denied] = (await once(early, 'response')) as [{ statusCode?: number }];
  expect(denied.statusCode).toBe(401);
  early.destroy();
  await expectPage({
    url,
    password: env.OFFICE_PASSWORD,
    isOfClient: true,
    rows: () => queryFile(database, 'SELECT * FROM example_com_leads'),
  });
  expect(running.output()).toBe('');
});

/** Compiler options for each moduleResolution but `nodenext`, which the README's test uses. */
const RESOLUTIONS = {
  bundler: ['--module', 'esnext', '--moduleResolution', 'bundler'],
  'node16, as CommonJS': ['--module', 'node16'],
  node16: ['--module', 'node16'],
} as const;

/** Compiles a website, and expects the compiler to find only its fault. */
async function expectTypes(compiler: string, title: string, options: readonly string[]): Promise<void> {
  const source = (capture: string) =>
    `import { createLeadIntakeClient, LeadAlreadyOpenError, type Lead } from 'lead-intake-sdk';
    import { createOutbox } from 'lead-intake-sdk/outbox';
    const client = createLeadIntakeClient({ baseUrl: '', apiKey: '' });
    export const created: Promise<Lead> = client.createLead(${capture}).then(({ lead }) => lead);
    export const known = [LeadAlreadyOpenError, createOutbox({ table: 'leads' }).setUpSql()] as const;`;
  const site = mkdtempSync(join(website, 'site-'));
  writeFileSync(
    join(site, 'package.json'),
    JSON.stringify({ type: title.endsWith('CommonJS') ? 'commonjs' : 'module' }),
  );
  writeFileSync(join(site, 'right.ts'), source(`{ displayName: 'Grace', contact: { type: 'phone', value: '12345' } }`));
  writeFileSync(join(site, 'wrong.ts'), source(`{ displayName: 'Grace', contact: { type: 'fax', value: '12345' } }`));
  writeFileSync(
    join(site, 'drivers.ts'),
    `import { createOutbox } from 'lead-intake-sdk/outbox';
    // Like the types of better-sqlite3.
    interface Prepared<P extends unknown[]> {
      run(...params: P): { changes: number; lastInsertRowid: number | bigint };
      all(...params: P): unknown[];
    }
    declare const database: {
      prepare<P extends unknown[] | {} = unknown[]>(sql: string): P extends unknown[] ? Prepared<P> : Prepared<[P]>;
    };
    const lead = { displayName: 'Grace', contact: { type: 'phone', value: '12345' } } as const;
    export const key: string = createOutbox({ table: 'leads' }).add(database, lead);`,
  );
  const strict = ['--noEmit', '--strict', '--target', 'es2022', '--skipLibCheck', 'false', '--typeRoots', 'none'];
  const check = run(process.execPath, [compiler, ...options, ...strict, 'drivers.ts', 'right.ts', 'wrong.ts'], {
    cwd: site,
  });
  await expect(check).rejects.toMatchObject(onlyWrong(4));
}

test.each(Object.entries(RESOLUTIONS))('the npm package has types for moduleResolution %s', (title, options) =>
  expectTypes(tsc, title, options),
);

// @proves clients-12
describeWithTools([`test -e ${OLDEST_TSC}`], 'for the oldest TypeScript', () => {
  const { bundler, node16 } = RESOLUTIONS;
  // TypeScript 7 has no moduleResolution `node`.
  const node = ['--module', 'commonjs', '--moduleResolution', 'node'];
  test.each(Object.entries({ bundler, node16, 'node, as CommonJS': node }))(
    'the npm package has types for the oldest TypeScript with moduleResolution %s',
    (title, options) => expectTypes(OLDEST_TSC, title, options),
  );
});

// @proves clients-12
test('CommonJS and ES modules share the client classes, and the core imports no Node module', async () => {
  const program = `const sdk = require('lead-intake-sdk');
    const { createOutbox } = require('lead-intake-sdk/outbox');
    import('lead-intake-sdk').then((esm) =>
      console.log(esm.ProblemError === sdk.ProblemError, typeof sdk.createLeadIntakeClient, typeof createOutbox));`;
  write('both.cjs', program);
  expect((await run('node', ['both.cjs'], options())).stdout).toBe('true function function\n');
  const core = globSync('node_modules/lead-intake-sdk/dist/{.,cjs}/*.js', { cwd: website });
  expect(core.length).toBeGreaterThan(20);
  for (const file of core) expect(readFileSync(join(website, file), 'utf8'), file).not.toContain('node:');
});

describeWithTools([`test -x ${RUNTIME.node20}`], 'on the oldest Node', () => {
  // @proves clients-12
  test('the oldest Node loads the npm package as CommonJS and as ES modules', async () => {
    const names = '(sdk, { createOutbox }) => console.log(typeof sdk.createLeadIntakeClient, typeof createOutbox)';
    write('old.cjs', `(${names})(require('lead-intake-sdk'), require('lead-intake-sdk/outbox'));`);
    write('old.mjs', `(${names})(await import('lead-intake-sdk'), await import('lead-intake-sdk/outbox'));`);
    for (const file of ['old.cjs', 'old.mjs']) {
      expect((await run(RUNTIME.node20, [file], options())).stdout).toBe('function function\n');
    }
  });
});
