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
