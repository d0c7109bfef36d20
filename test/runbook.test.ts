import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROBLEMS } from '../gateway/problems.ts';
import { ROOT } from './tools/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const runbook = read('docs/how-to/runbook.md');
const rules = read('ops/prometheus-rules.yaml');

const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
const faults = Object.entries(PROBLEMS).flatMap(([code, { status }]) => (status >= 500 ? [code] : []));

/** The sections by title. */
const sections = new Map(
  runbook
    .split(/^#{2,3} /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

describe('the runbook', () => {
  test('knows the alerts and faults', () => {
    expect(alerts.length).toBeGreaterThan(10);
    expect(faults).toContain('internal_error');
  });

  test.each([...alerts, ...faults])('has the meaning, the checks and the remedy of %s', (name) => {
    const section = sections.get(name);
    expect(section).toMatch(/\*\*Means\*\*[\s\S]*\*\*Look\*\*[\s\S]*\*\*(?:Do|do)\*\*/);
  });

  test('has no section of another name', () => {
    const titles = [...runbook.matchAll(/^### (.*)$/gm)].map(([, title]) => title);
    expect(titles.toSorted()).toEqual([...alerts, ...faults].toSorted());
  });

  test('is linked from each alert', () => {
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

  test('shows the deployments that are chosen, in every panel', () => {
    expect(dashboard.templating.list.map(({ name }) => name)).toContain('deployment');
    for (const query of queries) {
      const metrics = [...query.matchAll(/\b(?:lead_intake[\w:]+|nodejs_\w+|process_\w+)/g)];
      expect(metrics.length).toBeGreaterThan(0);
      expect([query, query.split('deployment=~"$deployment"').length - 1]).toEqual([query, metrics.length]);
    }
  });

  /** What is asked for by hand: callers when a token is replaced, and what the other side of a connection counts as well. */
  const BY_HAND = [
    'lead_intake_core_caller_calls_total',
    'lead_intake_core_replays_total',
    'lead_intake_gateway_core_batch_requests',
  ];

  test('or an alert has each metric', () => {
    const [, section = ''] = read('docs/reference/observability.md').split(/^## (?=Metrics)/m);
    const metrics = [...section.matchAll(/`(lead_intake_\w+)`/g)].map(([, name = '']) => name);
    const drawn = [...queries, rules].join('\n');
    expect([...new Set(metrics)].filter((name) => !new RegExp(`\\b${name}(?![a-z])`).test(drawn)).toSorted()).toEqual(
      BY_HAND,
    );
  });

  test('has the panels that the runbook names', () => {
    const titles = dashboard.panels.map(({ title }) => title);
    const named = [...runbook.matchAll(/\*\*Look\*\*([\s\S]*?)\*\*(?:D|d)o\*\*/g)].flatMap(([, look = '']) =>
      [...look.matchAll(/"([A-Z][^"]+)"/g)].map(([, title = '']) => title.replaceAll('\n', ' ')),
    );
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((name) => !titles.some((title) => title.startsWith(name.replace(/ \(.*/, ''))))).toEqual([]);
  });
});
