import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseCallers } from '../../src/callers-file.ts';
import { openStore } from '../../src/store/open-store.ts';
import { aLoggedRequest, times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { leadsIn } from '../support/exported.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { startRedisWithSentinel } from '../support/redis-sentinel.ts';
import { aCapture, LEADS, startService } from '../support/service.ts';
import { commandsIn, missingTools, type Outcome, runCommands } from '../tools/commands.ts';
import { MARKDOWN_PAGES } from '../tools/markdown.ts';
import { hasShellAndCurl, ROOT, readAddress, run, sharedFolder, temporaryFolder, watch } from '../tools/processes.ts';
import { aRedis, describeWithRedis, describeWithRedisServer, freePort } from '../tools/servers.ts';

const guide = (name: string) => readFileSync(join(ROOT, 'docs', name), 'utf8');
const howTo = (name: string) => guide(`how-to/${name}.md`);
const DEPLOY = howTo('deploy');
const DATABASES = howTo('databases');
const CALLERS = howTo('callers');
const BACKUP = howTo('backup');
const RUNBOOK = howTo('runbook');
const OBSERVABILITY = guide('reference/observability.md');

const TOKEN = 'the token of the tests of the guides';

type Texts = Readonly<Record<string, string>>;

/** Returns the commands of a page below a marker comment. Replaces the given texts, which must occur. */
function commandsWith(page: string, mark: string, replacements: Texts = {}): string {
  return Object.entries(replacements).reduce(
    (commands, [text, replacement]) => {
      if (!commands.includes(text)) throw new Error(`the commands marked ${mark} do not contain ${text}`);
      return commands.replaceAll(text, replacement);
    },
    commandsIn(page, mark),
  );
}

/** Defines a `npx` that runs the command line without npm, because npm takes longer than most commands. */
const WITHOUT_NPX = `npx() { ${CLI} "\${@:2}"; }\n`;

const commandLine = createServer(async (request, response) => {
  const asked = new URLSearchParams(await text(request));
  const given = (name: string) => asked.get(name) ?? '';
  const run = { env: { DATABASE_URL: given('databaseUrl') }, input: given('input'), cwd: given('cwd') };
  const outcome = await executed(CLI, asked.getAll('arg'), run).catch((error) => error);
  for (const name of ['stdout', 'stderr'] as const) writeFileSync(join(given('to'), name), outcome[name]);
  response.end(`${outcome.code ?? 0}`);
});
const commandSocket = `/tmp/lead-intake-commands-${randomUUID()}`;
beforeAll(() => once(commandLine.listen(commandSocket), 'listening'));
afterAll(() => void commandLine.close());

/** Defines the same with one process for all commands but `verify`, which reads more settings than DATABASE_URL. */
const IN_ONE_PROCESS = `npx() {
  case "$*" in *" verify"*) ${CLI} "\${@:2}"; return ;; esac
  local to=$(mktemp --directory) given=() each status
  for each in "\${@:2}"; do given+=(--data-urlencode "arg=$each"); done
  for each in "databaseUrl=$DATABASE_URL" "cwd=$PWD" "to=$to"; do given+=(--data-urlencode "$each"); done
  status=$(curl -sS --unix-socket ${commandSocket} "\${given[@]}" --data-urlencode input@- http://localhost)
  cat $to/stdout; cat $to/stderr >&2; rm -r $to
  return $status
}\n`;

/** Runs commands that must succeed; returns what they printed. */
async function printed(
  commands: string,
  env: Texts = {},
  before = Object.keys(env).join() === 'DATABASE_URL' ? IN_ONE_PROCESS : WITHOUT_NPX,
): Promise<string> {
  const { status, stdout, stderr }: Outcome = await runCommands(before + commands, env);
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.any(String) });
  return stdout;
}

/** Returns the names of the variables that pages set for commands or export. */
function variablesOfCommands(): ReadonlySet<string> {
  const names = MARKDOWN_PAGES.flatMap(({ blocks }) => blocks.map(({ commands }) => commands))
    .filter((commands) => commands.includes('npx lead-intake'))
    .flatMap((commands) => [...commands.matchAll(/^export ([A-Z_]+)=|\b([A-Z_]+)=\S+ npx lead-intake/gm)])
    .map(([, exported, set]) => `${exported ?? set}`);
  return new Set([...names, 'DATABASE_URL_FILE', 'LEAD_INTAKE_SOURCE_ID']);
}

/** Starts commands that serve until the end of the test. */
function serve(commands: string, env: Texts = {}) {
  const child = spawn('bash', ['-ec', commands], {
    cwd: ROOT,
    env: { ...process.env, SHUTDOWN_DRAIN_MS: '0', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const running = watch(child);
  onTestFinished(async () => {
    // Kills the process group, because the process may be a child of bash. A failed process leaves no group.
    if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGKILL');
    await running.ended();
  });
  return running;
}

/** Waits until a gateway reports that it and its core are ready. */
const expectReady = (url: string) =>
  expect.poll(() => fetch(`${url}/readyz`).then(({ status }) => status, String), { timeout: 60_000 }).toBe(200);

/** Returns free ports for a core and a gateway, their addresses, and a file with a token. */
async function reserveAddresses() {
  const folder = temporaryFolder();
  const [CORE_PORT, GATEWAY_PORT] = [`${await freePort()}`, `${await freePort()}`];
  const tokenFile = join(folder, 'core-token');
  writeFileSync(tokenFile, TOKEN);
  const [coreUrl, url] = [`http://127.0.0.1:${CORE_PORT}`, `http://127.0.0.1:${GATEWAY_PORT}`];
  return { folder, tokenFile, coreUrl, url, ports: { CORE_PORT, GATEWAY_PORT } };
}

const shared = sharedFolder();
let prepared: ReturnType<typeof prepare> | undefined;

/** Creates a SQLite database with a studio `STUDIO`, its owner, a key and three leads. */
async function prepare() {
  const path = join(shared(), 'lead-intake.db');
  const cli = async (...args: string[]) =>
    JSON.parse((await executed(CLI, ['--json', ...args], { env: { DATABASE_URL: `sqlite:${path}` } })).stdout);
  const csv = join(shared(), 'leads.csv');
  writeFileSync(
    csv,
    `displayName,email,stage,createTime
Ada,ada@example.org,won,2024-05-04T10:00:00Z
Grace,grace@example.org,lost,2024-05-05T10:00:00Z
Mary,mary@example.org,new,2024-05-06T10:00:00Z
`,
  );
  await cli('studios', 'put', 'STUDIO', '--region', 'DE');
  await cli('members', 'put', 'STUDIO', 'owner', '--role', 'owner');
  const key = await cli('keys', 'create', 'STUDIO', '--member', 'owner', '--name', 'Website');
  await cli('leads', 'import', 'STUDIO', csv);
  return { path, key };
}

/** Returns a copy of that database, with the command line on it. */
async function aDatabase() {
  prepared ??= prepare();
  const { path: original, key } = await prepared;
  const folder = temporaryFolder();
  const path = join(folder, 'lead-intake.db');
  copyFileSync(original, path);
  const env = { DATABASE_URL: `sqlite:${path}` };
  const printedBy = async (...args: string[]) => (await executed(CLI, args, { env })).stdout;
  const cli = async (...args: string[]) => JSON.parse(await printedBy('--json', ...args));
  const leads = async () => leadsIn(await printedBy('leads', 'export'));
  const lead = (await leads()).at(-1) ?? {};
  return { folder, path, env, cli, key, lead: { id: `${lead.id}` }, leads };
}

// @proves docs-1
describe.skipIf(!hasShellAndCurl)('the commands of the guides', () => {
  describeWithMongo('deploy.md', (mongoUrl) => {
    describeWithRedis('with a Redis', (redisUrl) => {
      test('the commands start a core and a gateway, which are ready and pass the verification', async () => {
        const { tokenFile, coreUrl, url, ports } = await reserveAddresses();
        const database = `${mongoUrl()}guides-${randomUUID()}`;
        const core = serve(
          commandsWith(DEPLOY, 'deploy-core', {
            '/run/secrets/core-token': tokenFile,
            'mongodb://db-1,db-2,db-3/lead-intake?replicaSet=rs0': database,
          }),
          ports,
        );
        const gateway = serve(
          commandsWith(DEPLOY, 'deploy-gateway', {
            '/run/secrets/core-token': tokenFile,
            'http://core:50051': coreUrl,
            'https://api.example.com': url,
            'redis://redis:6379': redisUrl(),
          }),
          ports,
        );
        await expectReady(url);

        const settings = {
          DATABASE_URL: database,
          CORE_URL: coreUrl,
          CORE_TOKEN_FILE: tokenFile,
          REDIS_URL: redisUrl(),
          PUBLIC_URL: url,
        };
        expect(await printed(commandsWith(DEPLOY, 'doctor'), settings)).toMatch(/^ok +database/m);

        await printed('npx lead-intake studios put s1\nnpx lead-intake members put s1 me --role owner', settings);
        const key = JSON.parse(
          await printed('npx lead-intake --json keys create s1 --member me --name Website', settings),
        );
        const verify = commandsWith(DEPLOY, 'verify', { 'lik_…': key.secret, 'https://api.example.com': url });
        expect(await printed(verify)).toContain(' 0 are broken');

        // Each process has a log, and one request is found in both.
        const folder = temporaryFolder();
        const response = await fetch(`${url}${LEADS}`, { headers: { authorization: `Bearer ${key.secret}` } });
        const requestId = response.headers.get('x-request-id') ?? '';
        await Promise.all([core, gateway].map((process) => process.printed(new RegExp(`"requestId":"${requestId}`))));
        writeFileSync(join(folder, 'core.log'), core.output());
        writeFileSync(join(folder, 'gateway.log'), gateway.output());
        const find = commandsWith(OBSERVABILITY, 'find-request', { '8d6f…': requestId });
        expect(await printed(`cd ${folder}\n${find}`)).toMatch(/^gateway\.log:.*"listLeads"[\s\S]*^core\.log:/m);
      });

      test('the commands start several gateways and several cores on one port', async () => {
        const { url, coreUrl, ports } = await reserveAddresses();
        const cores = commandsWith(howTo('balancers'), 'several-cores', {
          'mongodb://…': `${mongoUrl()}guides-${randomUUID()}`,
        });
        const gateways = commandsWith(howTo('balancers'), 'several-gateways', { 'redis://redis:6379': redisUrl() });
        const core = serve(cores, ports);
        serve(gateways, { ...ports, CORE_URL: coreUrl });
        await expectReady(url);
        await expect.poll(() => core.output().match(/Server listening/g)?.length).toBe(2);
      });
    });

    test('databases.md: a core starts on MongoDB', async () => {
      const { ports } = await reserveAddresses();
      const address = 'mongodb://user:password@db-1,db-2,db-3/lead-intake?replicaSet=rs0&tls=true';
      const commands = commandsWith(DATABASES, 'mongodb', { [address]: `${mongoUrl()}guides-${randomUUID()}` });
      await readAddress(serve(commands, ports));
    });

    test('move-leads.md: all leads move with their stages and creation times', async () => {
      const { folder, path, leads } = await aDatabase();
      const before = await leads();
      const target = `${mongoUrl()}guides-${randomUUID()}`;
      const commands = commandsWith(howTo('move-leads'), 'move-leads', {
        'sqlite:data/lead-intake.db': `sqlite:${path}`,
        'mongodb://db-1,db-2,db-3/lead-intake?replicaSet=rs0': target,
        'leads.csv': join(folder, 'leads.csv'),
      });
      await printed(commands);

      const after = leadsIn(await printed('npx lead-intake leads export', { DATABASE_URL: target }));
      const kept = ({ displayName, email, stage, createTime }: Record<string, string>) =>
        [displayName, email, stage, createTime].join();
      expect(before).toHaveLength(3);
      expect(after.map(kept).toSorted()).toEqual(before.map(kept).toSorted());
    });
  });

  describeWithRedisServer('databases.md', () => {
    test('a core starts on SQLite, one gateway with Redis, and one with a sentinel', async () => {
      const redis = await startRedisWithSentinel();
      onTestFinished(() => redis.stop());
      const { folder, url, coreUrl, ports } = await reserveAddresses();
      const path = join(folder, 'lead-intake.db');
      serve(commandsWith(DATABASES, 'sqlite', { 'sqlite:data/lead-intake.db': `sqlite:${path}` }), ports);
      const primary = await aRedis();
      const alone = { ...ports, GATEWAY_PORT: `${await freePort()}`, CORE_URL: coreUrl };
      serve(commandsWith(DATABASES, 'redis', { 'rediss://user:password@redis:6380': primary.url }), alone);
      await expectReady(`http://127.0.0.1:${alone.GATEWAY_PORT}`);
      const address = 'redis+sentinel://user:password@sentinel-1:26379,sentinel-2:26379,sentinel-3:26379/quota';
      const commands = commandsWith(DATABASES, 'redis-sentinel', { [address]: redis.url });
      serve(commands, { ...ports, CORE_URL: coreUrl });
      await expectReady(url);
    });
  });

  test('callers.md: each program has its own token, and the core serves the gateway', async () => {
    const { folder, url, coreUrl, ports } = await reserveAddresses();
    const file = join(folder, 'callers.json');
    const made = await printed(commandsIn(CALLERS, 'callers'));
    const [, token = ''] = /^(lic_[\w-]{48})$/m.exec(made) ?? [];
    const [, sha256 = ''] = /^\{"sha256":"([\da-f]{64})"/m.exec(made) ?? [];
    const [, example = ''] = /```json\n(\{ "callers"[^`]*)```/.exec(CALLERS) ?? [];
    const callers = parseCallers(
      example
        .replace('"sha256": "…"', `"sha256": "${sha256}"`)
        .replace('…', 'a'.repeat(64))
        .replace('…', 'b'.repeat(64)),
    );
    // Without TLS the core rejects a file with a caller that has only a certificate.
    const { reporting: _, ...withTokens } = callers;
    writeFileSync(file, JSON.stringify({ callers: withTokens }));
    const tokenFile = join(folder, 'website-token');
    writeFileSync(tokenFile, token);
    const database = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
    serve(commandsWith(CALLERS, 'callers-core', { '/etc/lead-intake/callers.json': file }), { ...ports, ...database });
    const gateway = commandsWith(CALLERS, 'callers-gateway', { '/run/secrets/website-token': tokenFile });
    serve(gateway, { ...ports, CORE_URL: coreUrl });
    await expectReady(url);
  });

  type Data = Awaited<ReturnType<typeof aDatabase>>;
  /** Commands that need only a database: their page and marker, the texts that the test replaces, and the expected output. */
  const ON_DATABASE: readonly (readonly [page: string, mark: string, texts: (data: Data) => Texts, RegExp])[] = [
    [
      'how-to/callers',
      'leaked-key',
      ({ folder, key }) => {
        const file = join(folder, 'leaked-file.log');
        writeFileSync(file, `GET /?key=${key.secret}\n`);
        return { 'leaked-file.log': file, 'my-studio': 'STUDIO', '0197…': key.id };
      },
      /^(?!.*lik_).*revokedAt/s,
    ],
    ['how-to/quotas', 'quotas', ({ key }) => ({ KEY: key.id }), /quotaLimit +5000.*quotaLimit +-/s],
    ['reference/observability', 'audit', ({ lead }) => ({ '--lead LEAD': `--lead ${lead.id}` }), /api-key-created/],
    [
      'reference/observability',
      'audit-export',
      ({ folder }) => ({ 'events.ndjson': join(folder, 'events.ndjson') }),
      /^$/,
    ],
    ['reference/observability', 'requests', () => ({ '8d6f…': '8d6f' }), /invalid_request.*8d6f/s],
    ['how-to/erase', 'erase', ({ lead }) => ({ 'STUDIO LEAD': `STUDIO ${lead.id}` }), /erased/],
    ['how-to/erase', 'erase-studio', () => ({}), /leadsToErase +\d+\nkeysToRevoke[\s\S]*erasedLeads/],
    ['how-to/erase', 'retention', () => ({}), /wouldErase +2\n[\s\S]*retentionDays +730\nfirstErasure/],
    ['how-to/keep-a-copy', 'consumers', () => ({ 'my-studio': 'STUDIO' }), /reporting.*relay.*removed +true/s],
    ['how-to/keep-a-copy', 'nightly', changedSince2020, /^$/],
    ['reference/command-line', 'filtered', changedSince2020, /@/],
  ];

  function changedSince2020({ folder }: Data): Texts {
    return { 'changed.csv': join(folder, 'changed.csv'), '2026-11-25': '2020-01-01' };
  }

  test.each(ON_DATABASE)('%s.md: %s', async (page, mark, texts, pattern) => {
    const data = await aDatabase();
    const store = await openStore(data.env.DATABASE_URL);
    await store.recordRequests([aLoggedRequest({ studioId: 'STUDIO', requestId: '8d6f' })]);
    await store.close();
    const commands = commandsWith(guide(`${page}.md`), mark, texts(data)).replaceAll('2026-11-01', '2020-01-01');
    expect(await printed(commands, data.env)).toMatch(pattern);
    if (mark.startsWith('erase')) expect(await data.leads()).toEqual([]);
    const changed = join(data.folder, 'changed.csv');
    if (existsSync(changed)) expect(leadsIn(readFileSync(changed, 'utf8')).length).toBeGreaterThan(0);
  });

  test('keep-a-copy.md: all leads are sent again', async () => {
    const { env } = await aDatabase();
    // This command runs with the real npx.
    expect(await printed(commandsWith(howTo('keep-a-copy'), 'resend'), env, '')).toContain('3');
  });

  test('backup.md: a restore repeats the erasures since the backup', async () => {
    const { folder, path, env, leads, lead, cli } = await aDatabase();
    const files = {
      'leads-backup.db': join(folder, 'leads-backup.db'),
      'erasures.ndjson': join(folder, 'erasures.ndjson'),
    };
    const [backup = '', journal = ''] = commandsWith(BACKUP, 'backup', files).trim().split('\n');
    await printed(backup, env);
    await cli('leads', 'erase', 'STUDIO', lead.id);
    await printed(journal, env);

    const isSound = /^ok +records +all \d+ can be read$/m;
    expect(
      await printed(commandsWith(BACKUP, 'check-backup', { 'leads-backup.db': files['leads-backup.db'] }), env),
    ).toMatch(isSound);
    expect(await printed(commandsWith(RUNBOOK, 'every-record'), env)).toMatch(isSound);

    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    await printed(`cp ${files['leads-backup.db']} ${path}`);
    expect(await leads()).toHaveLength(3);
    const restore = commandsWith(BACKUP, 'restore', { 'erasures.ndjson': files['erasures.ndjson'] });
    await printed(restore, env);
    expect(await leads()).toHaveLength(2);
  });

  test("deploy.md: systemd gets the units, and the command uses the cores' database", async () => {
    const folder = temporaryFolder();
    const places = {
      '/etc/lead-intake': join(folder, 'etc'),
      '/etc/systemd/system': join(folder, 'units'),
      '/usr/local/sbin': join(folder, 'sbin'),
      '/var/lib/lead-intake': join(folder, 'data'),
      '/opt/lead-intake': ROOT,
      '/usr/bin/node': process.execPath,
    };
    for (const place of ['units', 'sbin', 'data']) mkdirSync(join(folder, place));
    // Commands that need a machine with systemd are only recorded.
    const noted = join(folder, 'noted');
    const fakes = ['useradd', 'chown', 'systemctl'].map((name) => `${name}() { echo ${name} "$@" >> ${noted}; }\n`);
    await printed(commandsWith(DEPLOY, 'systemd-install', places), {}, fakes.join(''));
    expect(readFileSync(noted, 'utf8').split('\n')).toEqual([
      `useradd --system --shell /usr/sbin/nologin --home-dir ${folder}/data lead-intake`,
      `chown -R root:lead-intake ${folder}/etc`,
      'systemctl daemon-reload',
      'systemctl enable --now lead-intake-core@1 lead-intake-gateway@1',
      '',
    ]);
    expect(readdirSync(join(folder, 'units'))).toHaveLength(3);
    for (const file of readdirSync(join(folder, 'etc')))
      expect(statSync(join(folder, 'etc', file)).mode & 0o7777).toBe(0o640);

    // This systemd-run applies these options, and inherits no variable of its caller.
    const systemdRun = `#!/usr/bin/env -S -i /bin/bash
      for option; do
        case $option in
          --property=EnvironmentFile=*)
            file=\${option#*File=}
            while read -r line; do export "$line"; done < "\${file#-}" ;;
          --working-directory=*) cd "\${option#*=}" ;;
          --setenv=*) export "\${option#--setenv=}" ;;
          --quiet|--collect|--pipe|--wait|--uid=lead-intake|--property=UMask=0077) ;;
          *) exec "$@" ;;
        esac
        shift
      done\n`;
    writeFileSync(join(folder, 'sbin/systemd-run'), systemdRun, { mode: 0o755 });
    const env = { PATH: `${join(folder, 'sbin')}:${process.env.PATH}` };
    expect(await printed('lead-intake studios put s1 --region DE', { ...env, SUDO_USER: 'ada' }, '')).toContain(
      'active',
    );
    expect(await printed('lead-intake audit s1', env, '')).toContain(' for ada on ');
    expect(await printed('lead-intake doctor gateway || true', env, '')).toContain('https://api.example.com');
    for (const name of variablesOfCommands()) {
      const refused = await runCommands('lead-intake keys ending --days 1', { ...env, [name]: 'sqlite:other.db' });
      expect([name, refused]).toEqual([name, { status: 1, stdout: '', stderr: expect.stringContaining('unset') }]);
    }
    await printed(`lead-intake backup ${folder}/data/leads-backup.db`, env, '');
    // Only root can become the user.
    const asUser = 'runuser() { shift 3; "$@"; }\n';
    const withVariables = commandsWith(DEPLOY, 'systemd-with-variables', {
      '/var/lib/lead-intake': `${folder}/data`,
      '/usr/bin/node': process.execPath,
    });
    expect(await printed(withVariables, {}, asUser)).toContain('leads-backup.db is a backup');
    writeFileSync(join(folder, 'etc/relay.env'), 'RELAY_ENDPOINTS_FILE=/no/endpoints.json\n');
    expect(await printed('lead-intake doctor relay || true', env, '')).toContain('/no/endpoints.json');
    expect(readdirSync(join(folder, 'data'))).toContain('lead-intake.db');
    const settings = (name: string) => {
      const lines = readFileSync(join(folder, 'etc', name), 'utf8')
        .trim()
        .split('\n');
      return Object.fromEntries(lines.map((line) => line.split(/=(.*)/, 2)));
    };
    const { url, coreUrl, ports } = await reserveAddresses();
    serve('node src/main.ts', { ...settings('core.env'), ...ports });
    serve('node gateway/main.ts', { ...settings('gateway.env'), ...ports, CORE_URL: coreUrl });
    await expectReady(url);
  });

  test('certificates.md: a core and a gateway accept each other with the certificates of the page', async () => {
    const { folder, coreUrl, url, ports } = await reserveAddresses();
    await printed(
      `cd ${folder}\n${commandsWith(howTo('certificates'), 'certificates', { 'name=core\n': 'name=localhost\n' })}`,
    );
    const findSettings = (who: string) => {
      const [, row = ''] = new RegExp(`^\\| ${who} \\|(.*)$`, 'm').exec(howTo('certificates')) ?? [];
      const pairs = [...row.matchAll(/`([A-Z_]+)`(?: is)? `([\w.]+)`/g)];
      expect(pairs).toHaveLength(3);
      return Object.fromEntries(pairs.map(([, name, file]) => [name, join(folder, 'secrets', `${file}`)]));
    };
    const database = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
    serve('node src/main.ts', { ...ports, ...database, ...findSettings('a core') });
    const CORE_URL = coreUrl.replace('http://127.0.0.1', 'https://localhost');
    const gatewaySettings = findSettings('a gateway, a relay');
    serve('node gateway/main.ts', { ...ports, CORE_URL, ...gatewaySettings });
    await expectReady(url);
    const { CORE_CA_FILE } = gatewaySettings;
    const stranger = { ...ports, GATEWAY_PORT: `${await freePort()}`, CORE_URL, CORE_CA_FILE: `${CORE_CA_FILE}` };
    await serve('node gateway/main.ts', stranger).printed(/not ready: the core is unavailable/);
  });

  test("kubernetes.md: a backup is fetched, and restored while the core's pod sleeps", async () => {
    const { folder, env, leads, lead, cli } = await aDatabase();
    const [pod, here] = [join(folder, 'pod'), join(folder, 'here')];
    for (const place of [join(pod, 'data'), here]) mkdirSync(place, { recursive: true });
    renameSync(join(folder, 'lead-intake.db'), join(pod, 'data/lead-intake.db'));
    symlinkSync(join(pod, 'data/lead-intake.db'), join(folder, 'lead-intake.db'));
    // Commands in the pod run in its folder. The cluster does the rest.
    writeFileSync(join(pod, 'lead-intake'), `#!/bin/sh\nexec ${CLI} "$@"\n`, { mode: 0o755 });
    const kubectl = `PATH=${pod}:$PATH
      kubectl() {
        [ "$1" = exec ] || return 0
        while [ "$1" != -- ]; do shift; done
        shift; (cd ${pod} && "$@")
      }
      cd ${here}\n`;
    const inPod = { DATABASE_URL: `sqlite:${join(pod, 'data/lead-intake.db')}` };
    const [fetched, journal] = commandsIn(howTo('kubernetes'), 'kubernetes-backup').split(/^(?=.*erasures export)/m);
    await printed(`${fetched}`, inPod, kubectl);
    expect(statSync(join(here, 'leads-backup.db')).mode & 0o077).toBe(0);
    await cli('leads', 'erase', 'STUDIO', lead.id);
    await printed(`${journal}`, inPod, kubectl);
    const restore = commandsWith(howTo('kubernetes'), 'kubernetes-restore', {
      '/tmp/erasures.ndjson': join(pod, 'erasures.ndjson'),
    });
    for (const bytes of [0, 5000]) {
      // The commands run as if typed, where a failed command does not end the rest.
      const cut = `cp leads-backup.db whole.db; truncate --size ${bytes} leads-backup.db; set +e\n`;
      const refused = await runCommands(`${kubectl}${cut}${restore}`, inPod);
      expect([refused.status, JSON.stringify(refused)]).toEqual([1, expect.not.stringContaining('resent')]);
      expect(await leads()).toHaveLength(2);
      renameSync(join(here, 'whole.db'), join(here, 'leads-backup.db'));
    }
    expect(await printed(restore, inPod, kubectl)).toContain('resent');
    expect(await leads()).toHaveLength(2);
    expect(readdirSync(join(pod, 'data')).filter((name) => name.startsWith('backup'))).toEqual([]);
    expect(env.DATABASE_URL).toContain(folder);
  });

  test('command-line.md: verify passes on a deployment, and deletes its test studio', async () => {
    const { env, folder, leads } = await aDatabase();
    const before = await leads();
    const service = await startService({ core: env });
    onTestFinished(() => service.dispose());
    const replaced = { 'trial.json': join(folder, 'trial.json'), 'http://127.0.0.1:8080': service.url };
    expect(await printed(commandsWith(guide('reference/command-line.md'), 'verify', replaced), env)).toMatch(
      / 0 are broken.*deleted +\d\d/s,
    );
    expect(await leads()).toEqual(before);
  });

  test('test-a-website.md: the service runs in memory, shows each fault, and is reset', async () => {
    const { folder, url, ports } = await reserveAddresses();
    const faulty = await Promise.all(times(3, () => freePort()));
    const texts = {
      '/dev/shm': folder,
      '127.0.0.1:8080': new URL(url).host,
      'WINDOW_SECONDS=2': 'WINDOW_SECONDS=600',
      ...Object.fromEntries(faulty.map((port, index) => [`808${index + 1}`, `${port}`])),
    };
    const readCommands = (mark: string) =>
      Object.entries(texts).reduce(
        (text, [from, to]) => text.replaceAll(from, to),
        commandsIn(howTo('test-a-website'), mark),
      );
    const shell = [WITHOUT_NPX, readCommands('website-tests-start'), readCommands('website-tests-faults')].join('\n');
    const report = 'echo "AT $LEAD_INTAKE_URL KEY $LEAD_INTAKE_KEY ON $DATABASE_URL"; wait';
    const running = serve(`${shell}\n${report}`, ports);
    const [, address = '', secret = '', DATABASE_URL = ''] = await running.printed(/AT (\S+) KEY (\S+) ON (\S+)/);
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const create = async (address: string) => {
      const body = JSON.stringify(aCapture());
      const more = { 'idempotency-key': randomUUID() };
      const response = await fetch(`${address}${LEADS}`, { method: 'POST', headers: { ...headers, ...more }, body });
      return ((await response.json()) as { code?: string }).code ?? response.status;
    };
    const faults = async (port: number) => {
      const gateway = `http://127.0.0.1:${port}`;
      await expect.poll(() => fetch(`${gateway}/healthz`).then(({ ok }) => ok, String)).toBe(true);
      return [await create(gateway), await create(gateway)];
    };
    expect(await create(address)).toBe(201);
    expect(await Promise.all(faulty.map(faults))).toEqual([
      [201, 'integration_rate_limited'],
      ['integration_rate_unavailable', 'integration_rate_unavailable'],
      ['integration_unavailable', 'integration_unavailable'],
    ]);

    await printed(commandsIn(howTo('test-a-website'), 'website-tests-reset'), { DATABASE_URL });
    expect(await (await fetch(`${address}${LEADS}`, { headers })).json()).toEqual({ leads: [], nextCursor: null });
    expect(await create(address)).toBe(201);
  });

  test("runbook.md: profiles are taken of a running core, and the inspector's port is closed", async () => {
    const { folder, coreUrl, ports } = await reserveAddresses();
    const port = await freePort();
    const settings = { ...ports, DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
    const core = run('src/main.ts', { env: { ...settings, NODE_OPTIONS: `--inspect-port=127.0.0.1:${port}` } });
    expect(await readAddress(core)).toBe(coreUrl);
    const files = { 'core.cpuprofile': join(folder, 'cpu'), 'core.heapsnapshot': join(folder, 'heap') };
    const commands = commandsWith(RUNBOOK, 'profile', { ...files, ' 30 ': ' 1 ' });
    await printed(commands, { PID: `${core.child.pid}`, INSPECTOR: `127.0.0.1:${port}` });

    const [cpu, heap] = Object.values(files).map((file) => JSON.parse(readFileSync(file, 'utf8')));
    expect(cpu.nodes.length).toBeGreaterThan(1);
    expect(heap.snapshot.node_count).toBeGreaterThan(10_000);
    expect(statSync(files['core.heapsnapshot']).mode & 0o777).toBe(0o600);
    for (const take of ['cpu 1 > /dev/full', 'heap | true']) {
      const taking = `set -o pipefail; kill -USR1 ${core.child.pid}; node ops/profile.mjs ${take}`;
      expect(await runCommands(taking, { INSPECTOR: `127.0.0.1:${port}` })).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^.*(?:EPIPE|ENOSPC).*; 127\S+ is closed\n$/),
      });
      await expect(fetch(`http://127.0.0.1:${port}/json`)).rejects.toThrow('fetch failed');
    }
    await expect(fetch(`http://127.0.0.1:${port}/json`)).rejects.toThrow('fetch failed');
    expect(await run('src/check-health.ts', { env: ports }).ended()).toBe(0);
  });

  test('webhooks.md: a relay with the endpoints file of the page follows the feed', async () => {
    const { folder, coreUrl, ports } = await reserveAddresses();
    const database = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
    await printed('npx lead-intake studios put my-studio', database);
    const made = await printed(commandsIn(howTo('webhooks'), 'webhooks-setup'), database);
    const [, secret = ''] = /^(whsec_\S+)$/m.exec(made) ?? [];
    const [, token = ''] = /^(lic_[\w-]{48})$/m.exec(made) ?? [];
    const [, sha256 = ''] = /^\{"sha256":"([\da-f]{64})"/m.exec(made) ?? [];
    const [, example = ''] = /```json\n(\{ "endpoints"[^`]*)```/.exec(howTo('webhooks')) ?? [];
    const files = ['callers.json', 'relay-token', 'endpoints.json'].map((name) => join(folder, name));
    const [callersFile = '', tokenFile = '', endpointsFile = ''] = files;
    const relay = { may: ['feed'], consumers: ['crm-hook'], tokens: [{ sha256 }] };
    writeFileSync(callersFile, JSON.stringify({ callers: { relay } }));
    writeFileSync(tokenFile, token);
    writeFileSync(endpointsFile, example.replace('whsec_…', secret));
    serve('node src/main.ts', { ...ports, ...database, CORE_CALLERS_FILE: callersFile });
    const commands = commandsWith(howTo('webhooks'), 'webhooks-relay', {
      'http://core:50051': coreUrl,
      '/run/secrets/relay-token': tokenFile,
      '/etc/lead-intake/endpoints.json': endpointsFile,
    });
    const started = serve(commands, { RELAY_METRICS_ADDRESS: '127.0.0.1:0' });
    const [metrics] = await started.printed(/http:[0-9.:/]+\/metrics/);
    await expect
      .poll(async () => (await fetch(metrics)).text())
      .toContain('lead_intake_relay_feed_up{endpoint="crm-hook"} 1');
  });
});

/** Returns a block of commands from a page in another folder, by its first line. */
const findBlock = (path: string, firstLine: string): string => {
  const block = MARKDOWN_PAGES.find((page) => page.path === path)?.blocks.find(({ name }) => name === firstLine);
  if (!block) throw new Error(`${path} has no commands that begin with ${firstLine}`);
  return block.commands;
};

test.skipIf(missingTools(['bash --version']).length > 0)(
  'the outbox driver runs with the commands of its page',
  async () => {
    const commands = findBlock('sdk/test/outbox/README.md', "node sdk/test/outbox/node-driver.ts <<'END'");
    const file = join(temporaryFolder(), 'website.db');
    // This is the website's table in the page.
    using website = new DatabaseSync(file);
    website.exec('CREATE TABLE visits (note VARCHAR(200))');
    const output = await printed(commands.replaceAll('/tmp/website.db', file));
    expect(
      output
        .trim()
        .split('\n')
        .map((line) => Object.keys(JSON.parse(line)).join()),
    ).toEqual(['result', 'added', 'result']);
  },
);
