import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { BlockList, isIPv4 } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { STOP_MS } from '../common/deadlines.ts';
import { gatewaySettings } from '../gateway/config.ts';
import { isAllowed } from '../relay/addresses.ts';
import { relaySettings } from '../relay/config.ts';
import { parseEndpoints } from '../relay/endpoints-file.ts';
import { parseCallers, tokenHash } from '../src/callers-file.ts';
import { coreSettings } from '../src/config.ts';
import {
  build,
  describeWithKubeconform,
  describeWithKustomize,
  filterByKind,
  findPod,
  kubectlThatKeeps,
  type Manifest,
  makeEnvironment,
  OVERLAYS,
  parseManifests,
} from './support/kubernetes.ts';
import { strictSchemas } from './support/strict-schemas.ts';
import { commandsIn } from './tools/commands.ts';
import { bash, ROOT, sharedFolder } from './tools/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** How long a process may still take to end after its drain and STOP_MS; seconds. */
const SPARE_SECONDS = 4;

const seconds = (drainMs: number) => (drainMs + STOP_MS) / 1000;

const scratch = sharedFolder();

/** The built manifests of each overlay. The guide writes one more, which has all components. */
const builds: Record<string, string> = {};
const BUILDS = [...OVERLAYS, 'the overlay of the guide'];
const readManifests = (name: string): readonly Manifest[] => parseManifests(builds[name] ?? '');

async function buildAll(): Promise<void> {
  for (const overlay of OVERLAYS) builds[overlay] = build(join(ROOT, overlay));
  symlinkSync(ROOT, join(scratch(), 'lead-intake'));
  const commands = commandsIn(read('docs/how-to/kubernetes.md'), 'kubernetes-overlay');
  await bash(`set -e; cd ${scratch()}\n${commands}`);
  builds['the overlay of the guide'] = build(join(scratch(), 'production'));
}

describeWithKustomize('the manifests for Kubernetes', () => {
  beforeAll(buildAll);

  // @proves kubernetes-1
  test('the guides give a process enough time to stop', () => {
    const [, beyondDrain] = /`SHUTDOWN_DRAIN_MS` plus (\d+) s/.exec(read('docs/how-to/upgrade.md')) ?? [];
    expect(Number(beyondDrain)).toBe(seconds(0) + SPARE_SECONDS);
  });

  // @proves kubernetes-1
  test.each(BUILDS)('%s gives each process enough time to stop', (name) => {
    const manifests = readManifests(name);
    for (const deployment of filterByKind(manifests, 'Deployment')) {
      const { terminationGracePeriodSeconds, containers } = findPod(deployment);
      const { SHUTDOWN_DRAIN_MS = '0' } = makeEnvironment(containers[0], manifests);
      expect(terminationGracePeriodSeconds).toBe(seconds(Number(SHUTDOWN_DRAIN_MS)) + SPARE_SECONDS);
    }
  });

  // @proves kubernetes-1
  describeWithKubeconform('by the schemas of Kubernetes', (schema) => {
    let schemas = '';
    beforeAll(() => {
      const kinds = new Set(BUILDS.flatMap((name) => readManifests(name).map(({ kind }) => kind)));
      schemas = strictSchemas(schema, scratch(), [...kinds]);
    });
    const validate = (text: string) =>
      spawnSync('kubeconform', ['-strict', '-summary', '-schema-location', schemas, '-'], {
        input: text,
        encoding: 'utf8',
      });

    test.each(BUILDS)('the manifests match the schemas of Kubernetes: %s', (name) => {
      const { status, stdout } = validate(builds[name] ?? '');
      expect({ status, stdout }).toEqual({
        status: 0,
        stdout: expect.stringMatching(/Invalid: 0, Errors: 0, Skipped: 0/),
      });
    });

    test.each([
      ['a misspelt field', 'terminationGracePeriodSeconds:', 'terminationGracePeriodSecond:'],
      ['a field twice', '  clusterIP: None', '  clusterIP: None\n  clusterIP: None'],
    ])('kubeconform refuses %s', (_, valid, invalid) => {
      const text = builds[OVERLAYS[0] as string] ?? '';
      expect(text.replace(valid, invalid)).not.toBe(text);
      expect(validate(text.replace(valid, invalid)).status).toBe(1);
    });
  });

  describe.each(BUILDS)('%s', (name) => {
    const manifests = () => readManifests(name);
    const deployments = () => filterByKind(manifests(), 'Deployment');
    const selected = (labels: Readonly<Record<string, string>>) =>
      deployments().filter((each) => isSubset(labels, each.spec.template.metadata.labels));

    // @proves kubernetes-1
    test('every setting in the manifests exists, and secret ones come from files of a secret', () => {
      const settings = { core: coreSettings, gateway: gatewaySettings, relay: relaySettings };
      for (const deployment of deployments()) {
        const { containers, volumes } = findPod(deployment);
        const [{ name: process, volumeMounts }] = containers;
        const environment = makeEnvironment(containers[0], manifests());
        // The readiness check in the core's container reads the settings of a client.
        const known = { ...settings[process as 'core'], ...(process === 'core' && gatewaySettings) };
        const isSetting = (each: string) => each in known || each.replace(/_FILE$/, '') in known;
        expect(Object.keys(environment).filter((each) => !isSetting(each))).toEqual([]);
        expect(Object.keys(environment).filter((each) => /^(?:CORE_TOKEN|RELAY_TOKEN|REDIS_URL)$/.test(each))).toEqual(
          [],
        );
        expect(environment.DATABASE_URL ?? 'sqlite:').toMatch(/^sqlite:/);

        const files = Object.values(environment).filter((value) => value.startsWith('/'));
        const secrets = volumes.filter(({ secret }) => secret).map((volume) => volume.name);
        const folders = volumeMounts.filter((mount) => secrets.includes(mount.name)).map(({ mountPath }) => mountPath);
        expect(files.length).toBeGreaterThan(0);
        expect(files.filter((file) => !folders.some((folder) => file.startsWith(`${folder}/`)))).toEqual([]);
        expect(volumeMounts.map((mount) => mount.name).toSorted()).toEqual(volumes.map((each) => each.name).toSorted());
      }
      expect(filterByKind(manifests(), 'Secret')).toEqual([]);
    });

    // @proves kubernetes-1
    test('every pod runs as an unprivileged user on a read-only file system', () => {
      for (const deployment of deployments()) {
        const { containers, ...pod } = findPod(deployment);
        expect(pod).toMatchObject({
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 1000,
            runAsGroup: 1000,
            seccompProfile: { type: 'RuntimeDefault' },
          },
        });
        expect(containers).toHaveLength(1);
        expect(containers[0].securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
      const [namespace] = filterByKind(manifests(), 'Namespace');
      expect(namespace).toMatchObject({ metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } });
    });

    // @proves kubernetes-1
    test('every selector matches one deployment, and probes and Services use only ports that it has', () => {
      const listPorts = (deployment?: Manifest) => (deployment ? findPod(deployment).containers[0].ports : []);
      for (const deployment of deployments()) {
        expect(selected(deployment.spec.selector.matchLabels)).toEqual([deployment]);
        const [{ livenessProbe, readinessProbe, startupProbe }] = findPod(deployment).containers;
        const probed = [livenessProbe, readinessProbe, startupProbe].flatMap((probe) => probe?.httpGet?.port ?? []);
        expect(listPorts(deployment).map((port) => port.name)).toEqual(expect.arrayContaining(probed));
      }
      for (const { spec } of filterByKind(manifests(), 'Service')) {
        const [deployment, ...others] = selected(spec.selector);
        expect(others).toEqual([]);
        const names = spec.ports.map((port: { targetPort: string }) => port.targetPort);
        expect(listPorts(deployment).map((port) => port.name)).toEqual(expect.arrayContaining(names));
      }
      for (const { spec } of filterByKind(manifests(), 'PodDisruptionBudget')) {
        expect(selected(spec.selector.matchLabels)).toHaveLength(1);
      }
      for (const { spec } of filterByKind(manifests(), 'HorizontalPodAutoscaler')) {
        const target = deployments().find(({ metadata }) => metadata.name === spec.scaleTargetRef.name);
        // A number in the manifest would undo the autoscaler's work with each `apply`.
        expect(target).toMatchObject({ spec: expect.not.objectContaining({ replicas: expect.anything() }) });
        expect(spec.minReplicas).toBeGreaterThan(1);
      }
    });

    // @proves kubernetes-1
    test('network policies admit only the intended callers of each port', () => {
      const policies = filterByKind(manifests(), 'NetworkPolicy');
      expect(policies.filter(({ spec }) => selected(spec.podSelector.matchLabels ?? {}).length === 0)).toEqual([]);
      for (const deployment of deployments()) {
        const { labels } = deployment.spec.template.metadata;
        const rules = policies
          .filter(({ spec }) => isSubset(spec.podSelector.matchLabels ?? {}, labels))
          .flatMap(({ spec }) => spec.ingress ?? []);
        const who = Object.fromEntries(
          findPod(deployment).containers[0].ports.map((port) => [
            port.name,
            rules
              .filter(({ ports }) => ports.some((each: { port: string }) => each.port === port.name))
              .flatMap(({ from = ['everybody'] }) => from.map(findCaller)),
          ]),
        );
        const expected: Record<string, object> = {
          core: { rpc: ['lead-intake-gateway', 'lead-intake-caller'], metrics: ['monitoring'] },
          gateway: { http: ['everybody'], metrics: ['monitoring'] },
          relay: { metrics: ['monitoring'] },
        };
        expect(who).toEqual(expected[findPod(deployment).containers[0].name]);
      }
      const callers = selected({ 'lead-intake-caller': 'yes' }).map(({ metadata }) => metadata.name);
      expect(callers).toEqual(name.startsWith('ops') ? [] : ['lead-intake-relay']);
    });

    // @proves kubernetes-1
    test('each process serves its metrics where its port and its annotation say', () => {
      for (const deployment of deployments()) {
        const [container] = findPod(deployment).containers;
        const environment = makeEnvironment(container, manifests());
        const address = environment[`${container.name.toUpperCase()}_METRICS_ADDRESS`];
        const port = container.ports.find((each) => each.name === 'metrics')?.containerPort;
        expect(address).toBe(`0.0.0.0:${port}`);
        expect(deployment.spec.template.metadata.annotations['prometheus.io/port']).toBe(`${port}`);
      }
    });
  });

  // @proves kubernetes-1
  test('the relay can reach exactly the addresses that it may send to', () => {
    const rules = filterByKind(readManifests('the overlay of the guide'), 'NetworkPolicy')
      .filter(({ metadata }) => metadata.name === 'lead-intake-relay')
      .flatMap(({ spec }): { to: { ipBlock?: { cidr: string; except: string[] } }[] }[] => spec.egress);
    const blocks = rules.flatMap(({ to }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
    expect(blocks.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '2000::/3']);
    const [internet, excepted] = [new BlockList(), new BlockList()];
    const add = (list: BlockList, block: string) => {
      const [address = '', bits] = block.split('/');
      list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
    };
    for (const { cidr, except } of blocks) {
      add(internet, cidr);
      for (const each of except) add(excepted, each);
    }
    const named = [...read('relay/addresses.ts').matchAll(/'([\da-f.:]+)\/\d+'/g)].map(([, address = '']) => address);
    expect(named.length).toBeGreaterThan(25);
    for (const address of [...named, '198.19.255.255', '93.184.215.14', '2606:2800:220::1', '2002:a00:1::1']) {
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      const isReached = internet.check(address, family) && !excepted.check(address, family);
      // The first address of the global range is assigned to nobody.
      if (address !== '2000::') expect([address, isReached && !isAllowed(address, false)]).toEqual([address, false]);
      if (isAllowed(address, false)) expect([address, isReached]).toEqual([address, true]);
    }
  });

  // @proves kubernetes-1 docs-1
  test('the guide creates every file that its pods read, and none that Git would track', async () => {
    const secrets = join(scratch(), 'cluster');
    const page = read('docs/how-to/kubernetes.md');
    const certificates = commandsIn(read('docs/how-to/certificates.md'), 'certificates');
    const output = await bash(`set -eo pipefail; cd ${scratch()}/production
      ${kubectlThatKeeps(secrets)}
      ${certificates.replace('name=core\n', 'name=lead-intake-core\n')}
      ${commandsIn(page, 'kubernetes-secrets')}
      ${commandsIn(page, 'kubernetes-apply-secrets')}
      git init -q . && git add . && git ls-files
      echo done`);
    expect(output).toMatch(/^\.gitignore\nkustomization\.yaml\ndone\n$/m);

    const manifests = readManifests('the overlay of the guide');
    for (const deployment of filterByKind(manifests, 'Deployment')) {
      const { containers, volumes } = findPod(deployment);
      const files = Object.values(makeEnvironment(containers[0], manifests)).filter((value) => value.startsWith('/'));
      const made = files.map((file) => {
        const mount = containers[0].volumeMounts.find(({ mountPath }) => file.startsWith(`${mountPath}/`));
        const volume = volumes.find(({ name }) => name === mount?.name);
        return readFileSync(join(secrets, volume?.secret?.secretName ?? '', file.slice(`${mount?.mountPath}/`.length)));
      });
      expect(made.filter(({ length }) => length === 0)).toEqual([]);
    }
    const token = readFileSync(join(secrets, 'lead-intake-relay/relay-token'), 'utf8').trim();
    const callers = parseCallers(readFileSync(join(secrets, 'lead-intake-core/callers.json'), 'utf8'));
    expect(callers.relay?.tokens).toEqual([{ sha256: tokenHash(token) }]);
    const endpoints = parseEndpoints(readFileSync(join(secrets, 'lead-intake-relay/endpoints.json'), 'utf8'));
    expect([...endpoints.keys()]).toEqual(callers.relay?.consumers);
  });

  // @proves docs-1
  test('to put a core to sleep, the guide changes exactly its command and its probes', () => {
    const commands = commandsIn(read('docs/how-to/kubernetes.md'), 'kubernetes-restore');
    const [, patch = ''] = /--patch '([^']+)'/.exec(commands) ?? [];
    const core = filterByKind(readManifests('ops/kubernetes/overlays/sqlite'), 'Deployment').find(
      ({ metadata }) => metadata.name === 'lead-intake-core',
    );
    type Part = { readonly [name: string]: Part } | undefined;
    const at = (path: string) =>
      path
        .split('/')
        .slice(1)
        .reduce((part: Part, name) => part?.[name], core as unknown as Part);
    const operations: readonly { readonly path: string }[] = JSON.parse(patch);
    expect(operations.map(({ path }) => path.split('/').at(-1)).toSorted()).toEqual(
      [
        'command',
        ...Object.keys(at('/spec/template/spec/containers/0') ?? {}).filter((name) => name.endsWith('Probe')),
      ].toSorted(),
    );
    for (const { path } of operations) expect(at(path)).toBeDefined();
  });

  // @proves kubernetes-1
  test.each(BUILDS)('%s: a pod that has started stays in its Service while its dependencies fail', (name) => {
    for (const deployment of filterByKind(readManifests(name), 'Deployment')) {
      const [{ name: process, readinessProbe, livenessProbe, startupProbe }] = findPod(deployment).containers;
      if (process === 'relay') continue;
      const asked = [startupProbe, readinessProbe, livenessProbe].map(
        (probe) => probe?.httpGet?.path ?? probe?.exec?.command.join(' '),
      );
      const expected = {
        gateway: ['/readyz', '/healthz', '/healthz'],
        core: ['node src/check-health.ts', '/metrics', '/metrics'],
      };
      expect(asked).toEqual(expected[process as 'core']);
    }
  });

  // @proves crashes-26
  test('the name of the cores resolves to each of them, and there are at least as many gateways', () => {
    const manifests = readManifests('ops/kubernetes/overlays/mongodb-redis');
    const named = (kind: string, name: string) =>
      filterByKind(manifests, kind).find((each) => each.metadata.name === name)?.spec;
    expect(named('Service', 'lead-intake-core').clusterIP).toBe('None');
    const [cores, gateways] = ['core', 'gateway'].map((name) =>
      named('HorizontalPodAutoscaler', `lead-intake-${name}`),
    );
    expect(gateways.minReplicas).toBeGreaterThanOrEqual(cores.minReplicas);
    expect(gateways.maxReplicas).toBeGreaterThanOrEqual(cores.maxReplicas);
  });
});

const isSubset = (labels: Readonly<Record<string, string>>, all: Readonly<Record<string, string>>) =>
  Object.entries(labels).every(([name, value]) => all[name] === value);

/** Returns the callers that a part of a network policy admits: a label of pods, or a namespace. */
function findCaller(
  from: 'everybody' | Record<'podSelector' | 'namespaceSelector', { matchLabels: Record<string, string> }>,
) {
  if (from === 'everybody') return from;
  const [label = '', value] = Object.entries((from.podSelector ?? from.namespaceSelector).matchLabels)[0] ?? [];
  return value === 'yes' ? label : value;
}
