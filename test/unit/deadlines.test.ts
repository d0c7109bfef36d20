import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const SOURCE = readFileSync(join(import.meta.dirname, '../../common/deadlines.ts'), 'utf8');

/** Loads the deadlines with one value changed. */
function loadWith(name: string, ms: number): Promise<unknown> {
  const changed = SOURCE.replace(new RegExp(`(const ${name} =)[^;]+;`), `$1 ${ms};`);
  expect(changed).not.toBe(SOURCE);
  return import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(changed))}`);
}

// @proves crashes-13
describe('deadlines that depend on each other are checked when they are loaded', () => {
  test.each([
    ['REDIS_TIMEOUT_MS', 250, 'REDIS_TIMEOUT_MS (250) < QUOTA_TIMEOUT_MS (250)'],
    ['STORE_SILENCE_MS', 2000, 'STORE_SILENCE_MS + retry (4000) < STORE_CALL_MS (4000)'],
    ['STORE_CALL_MS', 5000, 'STORE_CALL_MS (5000) < CORE_CALL_MS (5000)'],
    ['SQLITE_PROBE_MS', 1000, 'SQLITE_PROBE_MS (1000) < CORE_HEALTH_MS (1000)'],
    ['CORE_HEALTH_MS', 2000, 'CORE_HEALTH_MS (2000) < CORE_PING_TIMEOUT_MS (2000)'],
    ['CORE_CALL_MS', 10_000, 'CORE_CALL_MS (10000) < REQUEST_ARRIVAL_MS (10000)'],
    ['GATEWAY_AFTER_CLOSE_MS', 5500, 'QUOTA_TIMEOUT_MS + CORE_CALL_MS + refund (5500) < GATEWAY_AFTER_CLOSE_MS (5500)'],
    ['GATEWAY_AFTER_CLOSE_MS', 8500, '(8500) < GATEWAY_AFTER_CLOSE_MS (8500)'],
    ['CORE_AFTER_CLOSE_MS', 4000, 'STORE_CALL_MS (4000) < CORE_AFTER_CLOSE_MS (4000)'],
    ['STOP_MS', 9750, '< STOP_MS (9750)'],
  ])('a %s of %i ms is refused, and the relation that it breaks is named', async (name, ms, relation) => {
    await expect(loadWith(name, ms)).rejects.toThrow(relation);
  });
});
