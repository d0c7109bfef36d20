import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/processes.ts';
import { describeIf, hasCommand } from '../support/servers.ts';

const RULES = 'prometheus-rules.yaml';
const rules = readFileSync(join(ROOT, 'ops', RULES), 'utf8');

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
});
