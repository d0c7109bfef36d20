import { expect, test } from 'vitest';
import { isUnprocessed } from '../../common/core-connection.ts';
import { errorSummary, formatStacks } from '../../common/error-summary.ts';

// Libraries may pass on an error as the cause of its own cause. Following such a chain to its end would never stop.
test('a circular chain of error causes does not cause an endless loop', () => {
  const inner = new Error('the connection was closed');
  const outer = new Error('the call failed', { cause: inner });
  inner.cause = outer;

  expect(errorSummary(outer)).toBe('the call failed: the connection was closed');
  expect(formatStacks(outer)).toContain('the connection was closed');
  expect(isUnprocessed(outer)).toBe(false);
});
