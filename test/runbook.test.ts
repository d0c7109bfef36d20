import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROBLEMS } from '../gateway/problems.ts';
import { ROOT } from './tools/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const runbook = read('docs/how-to/runbook.md');
const rules = read('ops/prometheus-rules.yaml');

const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
const serverErrors = Object.entries(PROBLEMS).flatMap(([code, { status }]) => (status >= 500 ? [code] : []));

/** The sections by title. */
const sections = new Map(
  runbook
    .split(/^#{2,3} /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

describe('the runbook', () => {
  test('the rules have more than ten alerts, and internal_error is a server error', () => {
    expect(alerts.length).toBeGreaterThan(10);
    expect(serverErrors).toContain('internal_error');
  });

  test.each([...alerts, ...serverErrors])('the runbook has the meaning, the checks and the remedy of %s', (name) => {
    const section = sections.get(name);
    expect(section).toMatch(/\*\*Means\*\*[\s\S]*\*\*Look\*\*[\s\S]*\*\*(?:Do|do)\*\*/);
  });

  test('the runbook has a section only for alerts and server errors', () => {
    const titles = [...runbook.matchAll(/^### (.*)$/gm)].map(([, title]) => title);
    expect(titles.toSorted()).toEqual([...alerts, ...serverErrors].toSorted());
  });

  test('each alert links to its section of the runbook', () => {
    const anchors = [...rules.matchAll(/runbook: docs\/how-to\/runbook\.md#(\S+)/g)].map(([, anchor]) => anchor);
    expect(anchors).toEqual(alerts.map((name) => name.toLowerCase()));
  });
});

describe('the dashboard', () => {
  const dashboard = JSON.parse(read('ops/grafana-dashboard.json')) as {
    readonly templating: { readonly list: readonly { readonly name: string }[] };
    readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
  };
  const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

  test('the dashboard shows only the selected deployments in every panel', () => {
    expect(dashboard.templating.list.map(({ name }) => name)).toContain('deployment');
    for (const query of queries) {
      const metrics = [...query.matchAll(/\b(?:lead_intake[\w:]+|nodejs_\w+|process_\w+)/g)];
      expect(metrics.length).toBeGreaterThan(0);
      expect([query, query.split('deployment=~"$deployment"').length - 1]).toEqual([query, metrics.length]);
    }
  });

  /** Metrics for manual queries: who still calls when a token is replaced, and counts from both ends of a connection. */
  const BY_HAND = [
    'lead_intake_core_caller_calls_total',
    'lead_intake_core_replays_total',
    'lead_intake_gateway_core_batch_requests',
  ];

  test('each metric is on the dashboard, in an alert or for manual queries', () => {
    const [, section = ''] = read('docs/reference/observability.md').split(/^## (?=Metrics)/m);
    const metrics = [...section.matchAll(/`(lead_intake_\w+)`/g)].map(([, name = '']) => name);
    const drawn = [...queries, rules].join('\n');
    expect([...new Set(metrics)].filter((name) => !new RegExp(`\\b${name}(?![a-z])`).test(drawn)).toSorted()).toEqual(
      BY_HAND,
    );
  });

  test('the dashboard has the panels that the runbook names', () => {
    const titles = dashboard.panels.map(({ title }) => title);
    const named = [...runbook.matchAll(/\*\*Look\*\*([\s\S]*?)\*\*(?:D|d)o\*\*/g)].flatMap(([, look = '']) =>
      [...look.matchAll(/"([A-Z][^"]+)"/g)].map(([, title = '']) => title.replaceAll('\n', ' ')),
    );
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((name) => !titles.some((title) => title.startsWith(name.replace(/ \(.*/, ''))))).toEqual([]);
  });
});
