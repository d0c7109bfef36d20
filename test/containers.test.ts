import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { archiveNames, PACKAGE_SETTINGS } from '../common/package-settings.ts';
import { gatewaySettings } from '../gateway/config.ts';
import { relaySettings } from '../relay/config.ts';
import { VERSION } from '../sdk/packages/build-packages.ts';
import { coreSettings } from '../src/config.ts';
import { describeInPods } from './kubernetes-pods.ts';
import {
  buildImage,
  type Container,
  createContainer,
  describeWithImage,
  readConfig,
  removeImage,
  stop,
} from './support/containers.ts';
import { describeWithMongo } from './support/mongodb.ts';
import { aCapture, LEADS } from './support/service.ts';
import { aWebhookDeployment } from './support/webhooks.ts';
import { validateBom } from './tools/bills-of-materials.ts';
import { bash, ROOT, temporaryFolder } from './tools/processes.ts';
import { describeWithRedis, freePort } from './tools/servers.ts';

// The tests are slow: each command in a container starts its own Node.
vi.setConfig({ testTimeout: 600_000 });

const PROCESSES = ['core', 'gateway', 'relay'] as const;
type ProcessName = (typeof PROCESSES)[number];

/** The maximum time to build the image without a cache; milliseconds. */
const BUILD_TIMEOUT_MS = 900_000;

/** Matches the package.json of an installed package, but none in a folder below it. */
const IS_PACKAGE = /node_modules\/(?:@[^/]+\/)?[^/@]+\/package\.json$/;

/** The parts of compose.yaml that concern the product. */
interface Compose {
  readonly services: Record<ProcessName, Service>;
  readonly secrets: Record<string, { readonly file: string }>;
}

interface Service {
  readonly build: string;
  readonly image: string;
  readonly command: string[];
  /** `CMD` and the words of the command. */
  readonly healthcheck: { readonly test: string[] };
  readonly environment: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  /** Each `OUTSIDE:INSIDE:ro`. */
  readonly volumes?: readonly string[];
}

const compose: Compose = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'));
const guide = readFileSync(join(ROOT, 'docs/how-to/containers.md'), 'utf8');
const [, commands = ''] = /<!-- containers -->\n```sh\n([\s\S]*?)```/.exec(guide) ?? [];

// @proves containers-1
test.each(PROCESSES)('compose.yaml gives the %s only settings that exist, and its token in a file', (name) => {
  const { environment, secrets } = compose.services[name];
  const settings = { core: coreSettings, gateway: gatewaySettings, relay: relaySettings }[name];
  const isSetting = (name: string) => name in settings || name.replace(/_FILE$/, '') in settings;
  expect(Object.keys(environment).filter((name) => !isSetting(name))).toEqual([]);
  for (const token of ['CORE_TOKEN', 'RELAY_TOKEN']) expect(environment).not.toHaveProperty(token);
  const files = Object.values(environment).filter((value) => value.startsWith('/run/secrets/'));
  expect(secrets.map((secret) => `/run/secrets/${secret}`)).toEqual(files);
  expect(files.length).toBeGreaterThan(0);
});

// @proves containers-1
test('compose.yaml runs one image, with a command for each process', () => {
  const services = PROCESSES.map((name) => compose.services[name]);
  for (const { build, image } of services) expect([build, image]).toEqual(['.', 'lead-intake']);
  expect(new Set(services.map(({ command }) => command.join())).size).toBe(PROCESSES.length);
});

// @proves supply-1
test('the Dockerfile names its base image by digest', () => {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  expect(dockerfile).toMatch(/^ARG BASE_IMAGE=node:26-slim@sha256:[\da-f]{64}$/m);
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  expect(bases).toEqual(['$BASE_IMAGE', 'dependencies', '$BASE_IMAGE']);
});

// @proves containers-1
describeWithImage('the image', () => {
  let image = '';
  beforeAll(async () => {
    image = await buildImage();
  }, BUILD_TIMEOUT_MS);
  afterAll(() => removeImage(image));

  test('the image runs as user node, who may write to /app/data only, and lists its commands', async () => {
    const container = await createContainer(image);
    expect(await container.exec('id', '--user', '--name')).toEqual({ status: 0, output: 'node\n' });
    const files = await container.exec('find', '/app', '-xdev', '-writable', '-not', '-type', 'l');
    expect(files.output).toBe('/app/data\n');

    const help = await container.exec(...(await readConfig(image)).Cmd);
    expect(help).toEqual({ status: 0, output: expect.stringContaining('doctor') });
  });

  test('the image has labels only for its name, purpose and version', async () => {
    const { Labels } = await readConfig(image);
    const { description, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const claims = Object.entries(Labels).filter(([name]) => name.startsWith('org.opencontainers.image.'));
    expect(Object.fromEntries(claims.map(([name, value]) => [name.split('.').at(-1), value]))).toEqual({
      title: 'Lead Intake',
      description,
      version,
    });
  });

  // @proves supply-2
  test('the bill of materials lists Debian, Node and every production package of the image', async () => {
    const container = await createContainer(image);
    const { output } = await container.exec('cat', 'image.cdx.json');
    const bom = JSON.parse(output);
    expect({ valid: validateBom(bom), faults: validateBom.errors }).toEqual({ valid: true, faults: null });
    const listed: { purl: string; version: string }[] = bom.components;
    const startingWith = (start: string) => listed.filter(({ purl }) => purl.startsWith(start));
    const [node] = startingWith('pkg:generic/node@');
    expect((await container.exec('node', '--version')).output).toBe(`v${node?.version}\n`);
    const installed = await container.exec('sh', '-c', 'find node_modules -path "*node_modules/*" -name package.json');
    const packages = installed.output
      .trim()
      .split('\n')
      .filter((path) => IS_PACKAGE.test(path));
    expect(startingWith('pkg:npm/')).toHaveLength(packages.length);
    const debian = await container.exec('sh', '-c', 'dpkg-query --show | wc -l');
    expect(startingWith('pkg:deb/')).toHaveLength(Number(debian.output));
  });

  // @proves relay-3
  test('the relay of compose.yaml sends webhooks and reloads a replaced endpoints file', async () => {
    const { receiver, coreUrl, relayToken, createLead, waiting } = await aWebhookDeployment();
    const { environment, command, volumes: [volume = ''] = [] } = compose.services.relay;
    const [, inside = ''] = volume.split(':');
    const [folder, tokenFile] = [join(temporaryFolder(), 'webhooks'), join(temporaryFolder(), 'relay-token')];
    mkdirSync(folder);
    writeFileSync(tokenFile, relayToken);
    const putEndpoint = (payload: string) => {
      const hooks = { url: receiver.url, secrets: receiver.secrets, allowPrivate: true, payload };
      writeFileSync(join(folder, 'next'), JSON.stringify({ endpoints: { hooks } }));
      renameSync(join(folder, 'next'), join(folder, 'endpoints.json'));
    };
    putEndpoint('thin');
    const container = await createContainer(image, {
      env: { ...environment, RELAY_CORE_ADDRESS: coreUrl, NODE_EXTRA_CA_CERTS: '/etc/receivers.pem' },
      files: { '/run/secrets/relay-token': tokenFile, [inside]: folder, '/etc/receivers.pem': receiver.caFile },
    });
    expect(await container.exec('lead-intake', 'doctor', 'relay')).toMatchObject({ status: 0 });
    const relay = container.run(...command);
    await createLead();
    await expect.poll(() => receiver.received.length).toBe(1);
    putEndpoint('full');
    await relay.printed(/endpoints reloaded/);
    await createLead();
    await expect.poll(waiting).toBe(0);
    expect(receiver.received.map(({ body }) => 'lead' in JSON.parse(body).data)).toEqual([false, true]);
    expect(await stop(relay)).toBe(0);
  });

  // These tests take minutes.
  if (process.env.SOAK) describeInPods(() => image);

  describeWithMongo('as compose.yaml has them', (mongoUrl) => {
    describeWithRedis('with a Redis', (redisUrl) => {
      test('compose.yaml serves, and every command of the guide prints its documented output', async () => {
        const folder = temporaryFolder();
        const [before = '', after = ''] = commands.split(/^docker compose up .*\n/m);
        expect(after).not.toBe('');
        await bash(`set -e; cd ${folder}; umask 077\n${before}`);
        expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700);

        const ports = { CORE_PORT: `${await freePort()}`, GATEWAY_PORT: `${await freePort()}` };
        const url = `http://127.0.0.1:${ports.GATEWAY_PORT}`;
        // Here the services of compose.yaml have addresses of this machine.
        const addresses: Record<string, string> = {
          DATABASE_URL: `${mongoUrl()}containers-${crypto.randomUUID()}`,
          REDIS_URL: redisUrl(),
          CORE_URL: `http://127.0.0.1:${ports.CORE_PORT}`,
          PUBLIC_URL: url,
        };
        const aService = (name: ProcessName) => {
          const { environment, secrets } = compose.services[name];
          const env = Object.entries(environment).map(([setting, value]) => [setting, addresses[setting] ?? value]);
          const files = secrets.map((secret) => [
            `/run/secrets/${secret}`,
            join(folder, compose.secrets[secret]?.file ?? ''),
          ]);
          return createContainer(image, {
            env: { ...Object.fromEntries(env), ...ports },
            files: Object.fromEntries(files),
          });
        };
        const [core, gateway] = [await aService('core'), await aService('gateway')];
        const { services } = compose;
        const running = [core.run(...services.core.command), gateway.run(...services.gateway.command)];
        const isHealthy = async (container: Container, { healthcheck }: Service) =>
          (await container.exec(...healthcheck.test.slice(1))).status === 0;
        await expect.poll(() => isHealthy(core, services.core)).toBe(true);
        await expect.poll(() => isHealthy(gateway, services.gateway)).toBe(true);

        const lines = after.split('\n').filter((line) => line !== '');
        const printed: string[] = [];
        for (const line of lines)
          printed.push(await bash(`${dockerFunctions({ core, gateway })}\n${line}\necho "status $?"`));
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
          fetch(`${url}/docs/assets/scalar.js`),
          fetch(`${url}/docs/packages/${archiveNames(PACKAGE_SETTINGS, VERSION).npm}`),
          fetch(`${url}/v1/openapi.json`),
        ];
        expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 200]);

        const key = `LEAD_INTAKE_KEY=${secret}`;
        const verified = await gateway.exec('env', key, 'lead-intake', 'verify', '--base-url', url);
        expect(verified).toEqual({ status: 0, output: expect.stringContaining(' 0 are broken') });

        for (const each of running.toReversed()) expect(await stop(each)).toBe(0);
        expect(running.map((each) => each.output()).join()).not.toContain('EACCES');
      });
    });
  });
});

/** Returns shell functions that run `docker compose exec SERVICE …` without Docker. */
function dockerFunctions(containers: Record<string, Container>): string {
  const entrances = Object.entries(containers).map(([name, container]) => container.shellFunction(`enter_${name}`));
  return `${entrances.join('\n')}\ndocker() { "enter_$3" "\${@:4}"; }`;
}
