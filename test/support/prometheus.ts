import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { CORE_HEALTH_MS } from '../../common/deadlines.ts';
import { ROOT } from '../tools/processes.ts';
import { freePort, killOnExit } from '../tools/servers.ts';

/** How long a minute of the rules takes here; milliseconds. */
const MINUTE_MS = 500;

/**
 * How often each target is scraped, and the timeout of a scrape; milliseconds. A gateway's response waits for its check of a silent
 * core. Two scrapes fit into five minutes, the shortest range in the rules.
 */
const SCRAPE_MS = CORE_HEALTH_MS + 200;

const MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1440 };

export interface FiringAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A Prometheus with the rules in `ops/`. */
export interface PrometheusServer {
  /** The names of all alerts in the rules. */
  readonly alerts: readonly string[];
  firing(): Promise<readonly FiringAlert[]>;
  /** Returns the finite values of a query since the start, by series. */
  values(query: string): Promise<readonly (readonly number[])[]>;
  stop(): Promise<void>;
}

/**
 * Starts a Prometheus in which the minutes of the rules pass 120 times as fast. The caller must stop it.
 *
 * @param targets the metrics addresses by job, HOST:PORT
 */
export async function startPrometheus(targets: Readonly<Record<string, string>>): Promise<PrometheusServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-prometheus-'));
  const rules = fastRules(readFileSync(join(ROOT, 'ops/prometheus-rules.yaml'), 'utf8'));
  const scraped = `${SCRAPE_MS}ms`;
  const config = {
    global: { scrape_interval: scraped, scrape_timeout: scraped },
    rule_files: ['rules.yaml'],
    scrape_configs: Object.entries(targets).map(([job, target]) => ({
      job_name: job,
      static_configs: [{ targets: [target] }],
    })),
  };
  writeFileSync(join(folder, 'rules.yaml'), stringify(rules));
  writeFileSync(join(folder, 'prometheus.yaml'), stringify(config));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const options = [
    `--config.file=${join(folder, 'prometheus.yaml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=warn',
  ];
  const child = spawn('prometheus', options, { stdio: ['ignore', 'ignore', 'inherit'] });
  killOnExit(child);
  const fetchData = async (path: string) => {
    const { data, error } = JSON.parse(await (await fetch(`${url}/api/v1/${path}`)).text());
    if (error !== undefined) throw new Error(error);
    return data;
  };
  // Prometheus takes some seconds before its first scrape.
  const hasScraped = async () => {
    const { activeTargets } = await fetchData('targets').catch(() => ({ activeTargets: [] }));
    const up = activeTargets.filter(({ health }: { health: string }) => health === 'up');
    return up.length === Object.keys(targets).length;
  };
  while (!(await hasScraped())) {
    if (child.exitCode !== null) throw new Error(`prometheus ended with ${child.exitCode}`);
    await sleep(50);
  }
  const startedAt = Date.now() / 1000;
  return {
    alerts: rules.groups.flatMap((group) => group.rules.flatMap(({ alert }) => alert ?? [])),
    async firing() {
      const { alerts } = await fetchData('alerts');
      return alerts.filter(({ state }: { state: string }) => state === 'firing');
    },
    async values(query) {
      const range = { start: `${startedAt}`, end: `${Date.now() / 1000}`, step: '0.5' };
      const { result } = await fetchData(`query_range?${new URLSearchParams({ query, ...range })}`);
      return result.map(({ values }: { values: [number, string][] }) =>
        values.map(([, value]) => Number(value)).filter(Number.isFinite),
      );
    },
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Rules {
  readonly groups: readonly {
    readonly interval: string;
    readonly rules: readonly { readonly alert?: string; readonly for?: string; readonly expr: string }[];
  }[];
}

/** Shortens all durations in the rules. */
function fastRules(text: string): Rules {
  const { groups } = parse(text) as Rules;
  return {
    groups: groups.map((group) => ({
      ...group,
      interval: fast(group.interval),
      rules: group.rules.map((rule) => ({
        ...rule,
        ...(rule.for && { for: fast(rule.for) }),
        expr: rule.expr.replaceAll(/(?<=\[)\w+(?=\])/g, fast),
      })),
    })),
  };
}

const fast = (duration: string): string =>
  `${Number(duration.slice(0, -1)) * (MINUTES[duration.slice(-1)] ?? Number.NaN) * MINUTE_MS}ms`;
