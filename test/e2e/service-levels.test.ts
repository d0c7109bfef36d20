import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { ROOT, temporaryFolder } from '../tools/processes.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

const RULES = 'prometheus-rules.yaml';
const rules = readFileSync(join(ROOT, 'ops', RULES), 'utf8');

function promtool(...args: string[]): string {
  return execFileSync('promtool', args, { encoding: 'utf8', cwd: join(ROOT, 'ops') });
}

describeIf(hasCommand('promtool'), 'the rules for Prometheus', 'install promtool, of Prometheus', () => {
  // @proves monitoring-1
  test('the alert rules are valid, and each alert fires for its failure but not otherwise', () => {
    expect(promtool('check', 'rules', RULES)).toContain('SUCCESS');
    expect(promtool('test', 'rules', 'prometheus-rules.test.yaml')).toContain('SUCCESS');
    const tested = readFileSync(join(ROOT, 'ops/prometheus-rules.test.yaml'), 'utf8');
    for (const [, alert] of rules.matchAll(/- alert: (\w+)/g)) {
      expect(tested).toMatch(new RegExp(`alertname: ${alert}\\n {8}exp_alerts:\\n`));
    }
  });

  test('the Prometheus configuration loads the rules and scrapes each pod of the manifests once', () => {
    const { scrape_configs, ...config } = parse(readFileSync(join(ROOT, 'ops/prometheus.yaml'), 'utf8'));
    const [hosts, { kubernetes_sd_configs, ...pods }] = scrape_configs;
    const { namespace } = parse(readFileSync(join(ROOT, 'ops/kubernetes/base/kustomization.yaml'), 'utf8'));
    // Debian's Prometheus does not support Kubernetes, so these targets stand in for what a cluster has.
    expect(kubernetes_sd_configs).toEqual([{ role: 'pod', namespaces: { names: [namespace] } }]);
    const others = { app: 'lead-intake-core', phase: 'Failed', port: 'metrics', number: 1 };
    const found = [...podPorts(), others, { ...others, app: 'other', phase: 'Running' }];
    const static_configs = found.map((each) => ({ targets: [`10.0.0.1:${each.number}`], labels: asFound(each) }));

    const folder = temporaryFolder();
    copyFileSync(join(ROOT, 'ops', RULES), join(folder, RULES));
    const file = join(folder, 'prometheus.yaml');
    writeFileSync(file, stringify({ ...config, scrape_configs: [hosts, { ...pods, static_configs }] }));
    expect(promtool('check', 'config', file)).toMatch(/1 rule files found[\s\S]*SUCCESS/);
    const targets: { labels: Record<string, string> }[] = JSON.parse(
      promtool('check', 'service-discovery', '--timeout=5s', file, pods.job_name),
    );
    const scraped = targets.flatMap(({ labels: { instance, deployment, __address__ } }) =>
      instance === undefined ? [] : [{ instance, deployment, __address__ }],
    );
    const expected = ['core', 'gateway', 'relay'].map((name) => ({
      instance: `lead-intake-${name}-x`,
      deployment: 'staging',
      __address__: '10.0.0.1:9464',
    }));
    expect(scraped.toSorted((a, b) => a.instance.localeCompare(b.instance))).toEqual(expected);
  });
});

interface PodPort {
  readonly app: string;
  readonly phase: string;
  /** The name of the container's port. */
  readonly port: string;
  readonly number: number;
}

/** Returns the ports of the pods that the manifests run. */
const podPorts = (): PodPort[] =>
  globSync('ops/kubernetes/**/{core,gateway,relay}.yaml', { cwd: ROOT })
    .flatMap((file) => parseAllDocuments(readFileSync(join(ROOT, file), 'utf8')).map((document) => document.toJS()))
    .filter(({ kind }) => kind === 'Deployment')
    .flatMap(({ spec: { template } }) =>
      template.spec.containers[0].ports.map((port: { name: string; containerPort: number }) => ({
        app: template.metadata.labels.app,
        phase: 'Running',
        port: port.name,
        number: port.containerPort,
      })),
    );

/** Returns the labels with which Prometheus discovers a pod's port in a cluster. */
const asFound = ({ app, phase, port }: PodPort) => ({
  __meta_kubernetes_namespace: 'staging',
  __meta_kubernetes_pod_name: `${app}-x`,
  __meta_kubernetes_pod_label_app: app,
  __meta_kubernetes_pod_phase: phase,
  __meta_kubernetes_pod_container_port_name: port,
});
