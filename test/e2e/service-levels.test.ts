import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { PROBLEMS } from '../../gateway/problems.ts';
import { anAuthority, writeCertificate } from '../support/certificates.ts';
import { startTestCore } from '../support/grpc.ts';
import { type Samples, scrape } from '../support/metrics.ts';
import { ROOT, temporaryFolder } from '../support/processes.ts';
import { describeIf, hasCommand } from '../support/servers.ts';
import { aCapture, aSeparateService, type Service } from '../support/service.ts';

const RULES = 'prometheus-rules.yaml';
const rules = readFileSync(join(ROOT, 'ops', RULES), 'utf8');
const dashboard = JSON.parse(readFileSync(join(ROOT, 'ops/grafana-dashboard.json'), 'utf8'));

interface Panel {
  readonly id: number;
  readonly targets?: readonly { readonly expr: string }[];
}

/** Every query of the dashboard, with a fixed rate interval. */
const dashboardQueries = (dashboard.panels as Panel[])
  .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  .map((expr) => expr.replaceAll('$__rate_interval', '5m'));

/** Every query of a rule. */
const ruleQueries = [...rules.matchAll(/expr: \|\n((?: {10,}.*\n)+)/g)].map(([, lines = '']) => lines);

/** The selectors of a query: each metric with its labels. */
const selectorsIn = (query: string) =>
  [...query.matchAll(/\b(?:lead_intake|nodejs_|process_)[\w:]*(?:\{[^}]*\})?/g)].map(([selector]) => selector);

function promtool(...args: string[]): string {
  return execFileSync('promtool', args, { encoding: 'utf8', cwd: join(ROOT, 'ops') });
}

describeIf(hasCommand('promtool'), 'the rules for Prometheus', 'install promtool, of Prometheus', () => {
  // @proves monitoring-1
  test('are valid, and each alert fires for the failure it is meant for and not in normal operation', () => {
    expect(promtool('check', 'rules', RULES)).toContain('SUCCESS');
    expect(promtool('test', 'rules', 'prometheus-rules.test.yaml')).toContain('SUCCESS');
    const tested = readFileSync(join(ROOT, 'ops/prometheus-rules.test.yaml'), 'utf8');
    for (const [, alert] of rules.matchAll(/- alert: (\w+)/g)) {
      expect(tested).toMatch(new RegExp(`alertname: ${alert}\\n {8}exp_alerts:\\n`));
    }
  });

  /** What is refused however the service is. */
  const refusals = Object.entries(PROBLEMS).flatMap(([code, { status }]) => (status < 500 ? [code] : []));
  const WRONG_KEY = 'integration_key_invalid';

  test.each([
    ['everything else that is no failure', [...refusals.filter((code) => code !== WRONG_KEY), 'not_answered']],
    ['wrong keys', [WRONG_KEY]],
  ])('fire and stay silent as usual under a flood of %s', (_, outcomes) => {
    const metric = 'lead_intake_gateway_request_duration_seconds';
    const flood = outcomes.flatMap((outcome) => {
      const labels = `operation="createLead",outcome="${outcome}",instance="flooded"`;
      return [`${metric}_count{${labels}}`, `${metric}_bucket{${labels},le="0.5"}`].flatMap((series) => [
        `      - series: '${series}'`,
        "        values: '0+60000x3000'",
      ]);
    });
    const usual = readFileSync(join(ROOT, 'ops/prometheus-rules.test.yaml'), 'utf8');
    const [head, ...tests] = usual.split(/^(?= {2}- name: )/m);
    // A flood of wrong keys is the cause of one alert.
    const others = outcomes.includes(WRONG_KEY) ? tests.filter((text) => !/BadKeyStorm/.test(text)) : tests;
    const flooded = others.map((text) => text.replace('input_series:\n', `input_series:\n${flood.join('\n')}\n`));
    const folder = temporaryFolder();
    cpSync(join(ROOT, 'ops', RULES), join(folder, RULES));
    writeFileSync(join(folder, 'flooded.test.yaml'), [head, ...flooded].join(''));

    expect(promtool('test', 'rules', join(folder, 'flooded.test.yaml'))).toContain('SUCCESS');
    expect(flooded.length).toBeGreaterThan(10);
  });

  // @proves monitoring-1
  test('and the dashboard query only metrics that the processes have', { timeout: 60_000 }, async () => {
    const service = await aSeparateService({
      core: { CORE_METRICS_ADDRESS: '127.0.0.1:0' },
      gateway: { GATEWAY_METRICS_ADDRESS: '127.0.0.1:0' },
    });
    const before = await scrapeBoth(service);
    await useEverything(service);
    const after = new Map([...(await scrapeBoth(await overTls())), ...(await scrapeBoth(service))]);
    expect(dashboardQueries.length).toBeGreaterThan(20);
    const ids = (dashboard.panels as Panel[]).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ruleQueries.length).toBeGreaterThan(15);
    const queries = new Set([...dashboardQueries, ...[...dashboardQueries, ...ruleQueries].flatMap(selectorsIn)]);

    const folder = temporaryFolder();
    cpSync(join(ROOT, 'ops', RULES), join(folder, RULES));
    writeFileSync(join(folder, 'scraped.test.yaml'), queryTest(before, after, [...queries]));

    expect(promtool('test', 'rules', join(folder, 'scraped.test.yaml'))).toContain('SUCCESS');
  });
});

type MetricsSource = Pick<Service, 'gatewayMetrics' | 'coreMetrics'>;

/** A core and a gateway with certificates, and a gateway with a receiver of spans, which have metrics that others lack. */
async function overTls(): Promise<MetricsSource> {
  const folder = temporaryFolder();
  const { cert, key } = writeCertificate(
    folder,
    'core',
    await (await anAuthority('core')).issue('localhost', 'server'),
  );
  const core = await startTestCore({
    CORE_TLS_CERT_FILE: cert,
    CORE_TLS_KEY_FILE: key,
    CORE_METRICS_ADDRESS: '127.0.0.1:0',
  });
  onTestFinished(() => core.stop());
  const gateway = await startGateway(
    readGatewayConfig({
      CORE_URL: `https://localhost:${core.port}`,
      CORE_CA_FILE: cert,
      GATEWAY_PORT: '0',
      GATEWAY_METRICS_ADDRESS: '127.0.0.1:0',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      LOG_LEVEL: 'silent',
    }),
  );
  onTestFinished(() => gateway.stop());
  return { gatewayMetrics: () => scrape(gateway.metricsUrl), coreMetrics: () => scrape(core.metricsUrl) };
}

/** The samples of both processes, with the labels that a scrape adds. */
async function scrapeBoth(service: MetricsSource): Promise<Samples> {
  const both = [
    ...[...(await service.gatewayMetrics())].map((sample) => ['gateway', ...sample] as const),
    ...[...(await service.coreMetrics())].map((sample) => ['core', ...sample] as const),
  ];
  return new Map(
    both.map(([job, series, value]) => {
      const labels = `job="${job}",instance="${job}:1"`;
      return [series.endsWith('}') ? `${series.slice(0, -1)},${labels}}` : `${series}{${labels}}`, value];
    }),
  );
}

/** Uses every operation, with the outcomes that a query names. */
async function useEverything(service: Service): Promise<void> {
  const { secret } = await service.aStudioWithKey();
  const body = aCapture();
  const name = { 'idempotency-key': randomUUID() };
  for (const capture of [body, body, { ...body, displayName: 'Another' }]) await service.post(secret, capture, name);
  await service.post(secret, body);
  await service.get(secret);
  await service.get(secret, `/${randomUUID()}`);
  await service.get('no key');
}

/** A promtool test: after two scrapes, a minute apart, each query has a result. */
function queryTest(before: Samples, after: Samples, queries: readonly string[]): string {
  const input_series = [...after].map(([series, value]) => {
    const first = before.get(series) ?? 0;
    return { series, values: `${first} ${value} ${value}` };
  });
  const promql_expr_test = queries.map((query) => ({
    expr: `count(${query}) > bool 0`,
    eval_time: '2m',
    exp_samples: [{ labels: '{}', value: 1 }],
  }));
  // JSON is YAML.
  return JSON.stringify({
    rule_files: [RULES],
    evaluation_interval: '1m',
    tests: [{ interval: '1m', input_series, promql_expr_test }],
  });
}
