import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { gatewaySettings } from '../gateway/config.ts';
import { coreSettings } from '../src/config.ts';
import {
  buildImage,
  type Container,
  createContainer,
  describeWithImages,
  removeImage,
  stop,
} from './support/containers.ts';
import { describeWithMongo } from './support/mongodb.ts';
import { bash, ROOT, temporaryFolder } from './support/processes.ts';
import { describeWithRedis, freePort } from './support/servers.ts';
import { aCapture, LEADS } from './support/service.ts';

// Each command in a container starts a Node of its own.
vi.setConfig({ testTimeout: 120_000 });

const IMAGES = ['core', 'gateway'] as const;

/** How long building both images may take where nothing of them is there yet; milliseconds. */
const BUILT_WITHIN_MS = 300_000;

/** As far as it is about the product. */
interface Compose {
  readonly services: Record<string, { environment?: Record<string, string>; secrets?: readonly string[] }>;
  readonly secrets: Record<string, { readonly file: string }>;
}

const compose: Compose = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'));
const guide = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
const [, commands = ''] = /<!-- containers -->\n```sh\n([\s\S]*?)```/.exec(guide) ?? [];

test.each(IMAGES)('compose.yaml gives the %s settings that there are, and its token by a file', (name) => {
  const { environment = {}, secrets } = compose.services[name] ?? {};
  const settings = name === 'core' ? coreSettings : gatewaySettings;
  const named = Object.keys(environment).map((setting) => setting.replace(/_FILE$/, ''));
  expect(named.filter((setting) => !(setting in settings))).toEqual([]);
  expect(environment).not.toHaveProperty('CORE_TOKEN');
  expect(secrets?.map((secret) => `/run/secrets/${secret}`)).toEqual([environment.CORE_TOKEN_FILE]);
});

describeWithImages('the images', () => {
  const images = { core: '', gateway: '' };
  beforeAll(async () => {
    for (const name of IMAGES) images[name] = await buildImage(name);
  }, BUILT_WITHIN_MS);
  afterAll(() => Promise.all(IMAGES.map((name) => removeImage(images[name]))));

  test.each(IMAGES)(
    'the %s belongs to root, runs as user node, and has every command of the command line',
    async (name) => {
      const container = await createContainer(images[name]);
      expect(await container.exec('id', '--user', '--name')).toEqual({ status: 0, output: 'node\n' });
      const files = await container.exec('find', '/app', '-xdev', '-writable', '-not', '-type', 'l');
      expect(files.output).toBe(name === 'core' ? '/app/data\n' : '');

      const help = await container.exec('lead-intake', '--help');
      expect(help).toEqual({ status: 0, output: expect.stringContaining('doctor') });
    },
  );

  test('a core with no database of its own keeps its leads in a volume; SIGTERM ends it with status 0', async () => {
    const container = await createContainer(images.core, { env: { CORE_PORT: `${await freePort()}` } });
    expect(await container.health()).toBe(1);
    const core = container.run();
    await core.printed(/Server listening/);
    expect(await container.health()).toBe(0);
    expect(await container.exec('lead-intake', 'studios', 'put', 's1')).toMatchObject({ status: 0 });
    expect(await stop(core)).toBe(0);

    const again = container.run();
    await again.printed(/Server listening/);
    expect((await container.exec('lead-intake', '--json', 'studios', 'get', 's1')).output).toContain('"active"');
    expect(await stop(again)).toBe(0);
  });

  describeWithMongo('as compose.yaml has them', (mongoUrl) => {
    describeWithRedis('with a Redis', (redisUrl) => {
      test('serve, and every command of the guide does what it says', async () => {
        const folder = temporaryFolder();
        const [before = '', after = ''] = commands.split(/^docker compose up .*\n/m);
        expect(after).not.toBe('');
        await bash(`set -e; cd ${folder}; umask 077\n${before}`);
        expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700);

        const ports = { CORE_PORT: `${await freePort()}`, GATEWAY_PORT: `${await freePort()}` };
        const url = `http://127.0.0.1:${ports.GATEWAY_PORT}`;
        // Where the services of compose.yaml are on this machine.
        const here: Record<string, string> = {
          DATABASE_URL: `${mongoUrl()}containers-${crypto.randomUUID()}`,
          REDIS_URL: redisUrl(),
          CORE_URL: `http://127.0.0.1:${ports.CORE_PORT}`,
          PUBLIC_URL: url,
        };
        const aService = (name: (typeof IMAGES)[number]) => {
          const { environment = {}, secrets = [] } = compose.services[name] ?? {};
          const env = Object.entries(environment).map(([setting, value]) => [setting, here[setting] ?? value]);
          const files = secrets.map((secret) => [
            `/run/secrets/${secret}`,
            join(folder, compose.secrets[secret]?.file ?? ''),
          ]);
          return createContainer(images[name], {
            env: { ...Object.fromEntries(env), ...ports },
            files: Object.fromEntries(files),
          });
        };
        const [core, gateway] = [await aService('core'), await aService('gateway')];
        const running = [core.run(), gateway.run()];
        await expect.poll(() => core.health(), { timeout: 30_000 }).toBe(0);
        await expect.poll(() => gateway.health(), { timeout: 30_000 }).toBe(0);

        const lines = after.split('\n').filter((line) => line !== '');
        const printed: string[] = [];
        for (const line of lines) printed.push(await bash(`${engine({ core, gateway })}\n${line}\necho "status $?"`));
        expect(lines.length).toBeGreaterThan(4);
        for (const [index, line] of lines.entries()) {
          const [, answer = ''] = / # → (.+)$/.exec(line) ?? [];
          expect({ line, printed: printed[index] }).toEqual({ line, printed: expect.stringContaining(answer) });
          expect({ line, printed: printed[index] }).toEqual({ line, printed: expect.stringMatching(/status 0\n$/) });
        }

        const [secret = ''] = /lik_\S{48}/.exec(printed.join()) ?? [];
        const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
        const answers = [
          fetch(`${url}${LEADS}`, {
            method: 'POST',
            headers: { ...headers, 'idempotency-key': crypto.randomUUID() },
            body: JSON.stringify(aCapture()),
          }),
          fetch(`${url}${LEADS}`, { headers }),
          fetch(`${url}/docs`),
          fetch(`${url}/v1/openapi.json`),
        ];
        expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([201, 200, 200, 200]);

        for (const each of running.toReversed()) expect(await stop(each)).toBe(0);
        expect(running.map((each) => each.output()).join()).not.toContain('EACCES');
      });
    });
  });
});

/** A shell's `docker compose exec SERVICE …`, where there is no Docker. */
function engine(containers: Record<string, Container>): string {
  const quoted = (words: readonly string[]) => words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const entrances = Object.entries(containers).map(
    ([name, { entrance }]) => `enter_${name}() { ${quoted(entrance)} "$@" < /dev/null; }`,
  );
  return `${entrances.join('\n')}\ndocker() { "enter_$3" "\${@:4}"; }`;
}
