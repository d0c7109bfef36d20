import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROBLEMS } from '../gateway/problems.ts';
import { ROOT } from './support/processes.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const runbook = read('docs/how-to/runbook.md');
const rules = read('ops/prometheus-rules.yaml');

const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
const faults = Object.entries(PROBLEMS).flatMap(([code, { status }]) => (status >= 500 ? [code] : []));

/** Sections by their titles. */
const sections = new Map(
  runbook
    .split(/^#{2,3} /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

describe('the runbook', () => {
  test('has alerts and faults to tell of', () => {
    expect(alerts.length).toBeGreaterThan(10);
    expect(faults).toContain('internal_error');
  });

  test.each([...alerts, ...faults])('says of %s what it means, what to look at and what to do', (name) => {
    const section = sections.get(name);
    expect(section).toMatch(/\*\*Means\*\*[\s\S]*\*\*Look\*\*[\s\S]*\*\*(?:Do|do)\*\*/);
  });

  test('has no section of what is gone', () => {
    const titles = [...runbook.matchAll(/^### (.*)$/gm)].map(([, title]) => title);
    expect(titles.toSorted()).toEqual([...alerts, ...faults].toSorted());
  });

  test('is where each alert leads', () => {
    const anchors = [...rules.matchAll(/runbook: docs\/how-to\/runbook\.md#(\S+)/g)].map(([, anchor]) => anchor);
    expect(anchors).toEqual(alerts.map((name) => name.toLowerCase()));
  });

  test('names panels that the dashboard has, and metrics that the processes tell', () => {
    const dashboard = read('ops/grafana-dashboard.json');
    const titles = JSON.parse(dashboard).panels.map(({ title }: { title: string }) => title);
    const quoted = [...runbook.matchAll(/(?<!:)"([A-Z][^"?]*)"/g)].map(([, text = '']) => text.replaceAll('\n', ' '));
    expect(quoted.length).toBeGreaterThan(8);
    for (const text of quoted)
      expect(
        titles.some((title: string) => title.startsWith(text)),
        text,
      ).toBe(true);
    const told = read('gateway/metrics.ts') + read('src/rpc/metrics.ts');
    for (const [metric] of runbook.matchAll(/lead_intake_\w+/g)) expect(told).toContain(`'${metric}'`);
  });
});
