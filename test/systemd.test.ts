import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MAX_DRAIN_MS, STOP_MS } from '../common/deadlines.ts';
import { ROOT, temporaryFolder } from './tools/processes.ts';
import { describeIf, hasCommand } from './tools/servers.ts';

const UNITS = ['lead-intake-core@', 'lead-intake-gateway@', 'lead-intake-relay'];
const toPath = (unit: string) => join(ROOT, 'ops/systemd', `${unit}.service`);

/** The maximum exposure of a unit as systemd rates it, from 0 to 100. A service without any hardening has about 96. */
const MAX_EXPOSURE = 20;

describe.each(UNITS)('the unit %s', (unit) => {
  // @proves kubernetes-1
  test('the unit gives its process enough time to stop', () => {
    const [, timeout] = /^TimeoutStopSec=(\d+)$/m.exec(readFileSync(toPath(unit), 'utf8')) ?? [];
    const drainMs = unit.includes('relay') ? 0 : MAX_DRAIN_MS;
    expect(Number(timeout) * 1000).toBeGreaterThan(drainMs + STOP_MS);
  });
});

// @proves kubernetes-5
test.each(UNITS)('the unit %s restarts its process, however often it fails', (unit) => {
  const [, unitSection = '', serviceSection = ''] = readFileSync(toPath(unit), 'utf8').split(/^\[\w+\]$/m);
  // By default systemd gives up after five failures within ten seconds, and a failing start takes one second.
  expect(unitSection).toMatch(/^StartLimitIntervalSec=0$/m);
  expect(serviceSection).toMatch(/^Restart=always$/m);
  expect(Number(/^RestartSec=(\d+)$/m.exec(serviceSection)?.[1])).toBeGreaterThanOrEqual(1);
});

describeIf(hasCommand('systemd-analyze'), 'systemd', 'install systemd, which need not run', () => {
  /** Returns systemd's objections to a unit, on a machine that may not have its program. */
  const findFaults = (path: string) => {
    const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', '--recursive-errors=no', path], {
      encoding: 'utf8',
    });
    return stderr.split('\n').filter((line) => line !== '' && !/Command \/usr\/bin\/node is not executable/.test(line));
  };
  const isConfined = (path: string) => {
    const options = ['--offline=yes', '--no-pager', `--threshold=${MAX_EXPOSURE}`];
    return spawnSync('systemd-analyze', ['security', ...options, path]).status === 0;
  };

  // @proves kubernetes-5
  test.each(UNITS)('systemd accepts every line of %s and rates it as confined', (unit) => {
    expect(findFaults(toPath(unit))).toEqual([]);
    expect(isConfined(toPath(unit))).toBe(true);
  });

  test('systemd rejects a misspelt line and a unit that is not confined', () => {
    const unit = readFileSync(toPath('lead-intake-relay'), 'utf8');
    const path = join(temporaryFolder(), 'lead-intake-relay.service');
    writeFileSync(path, unit.replace('ProtectHome=', 'ProtectHoem='));
    expect(findFaults(path)).toEqual([expect.stringContaining('ProtectHoem')]);
    writeFileSync(path, unit.replace(/^(?:Capability|Protect|SystemCallFilter|RestrictNamespaces).*\n/gm, ''));
    expect(isConfined(path)).toBe(false);
  });
});
