import { describe, expect, test } from 'vitest';
import { BusiestKeys } from '../../gateway/busiest-keys.ts';
import { times } from '../support/builders.ts';

const FIVE_MINUTES = 300_000;

// @proves monitoring-3
describe('the busiest keys', () => {
  const request = (apiKeyId: string, status = 201, outcome = 'ok') => ({
    studioId: `of ${apiKeyId}`,
    apiKeyId,
    status,
    outcome,
  });

  test('are those with most requests, and with most refusals, of all slots of the last hour', () => {
    let now = 0;
    const keys = new BusiestKeys(() => now);
    for (const _ of times(3, String)) keys.count(request('a'));
    now = FIVE_MINUTES;
    keys.count(request('a', 409, 'integration_lead_already_open'));
    for (const _ of times(2, String)) keys.count(request('b', 429, 'integration_rate_limited'));
    keys.count(request('b', 503, 'integration_unavailable'));
    keys.count({ ...request('b'), status: undefined, outcome: 'not_answered' });
    keys.count({ studioId: undefined, apiKeyId: undefined, status: 401, outcome: 'integration_key_invalid' });
    const a = { studioId: 'of a', apiKeyId: 'a', requests: 4, refused: 1, limited: 0 };
    const b = { studioId: 'of b', apiKeyId: 'b', requests: 4, refused: 2, limited: 2 };
    expect(keys.report()).toEqual({ keys: 2, byRequests: [a, b], byRefusals: [b, a] });
    now = 12 * FIVE_MINUTES;
    expect(keys.report()).toEqual({
      keys: 2,
      byRequests: [b, { ...a, requests: 1 }],
      byRefusals: [b, { ...a, requests: 1 }],
    });
    now = 13 * FIVE_MINUTES;
    expect(keys.report()).toEqual({ keys: 0, byRequests: [], byRefusals: [] });
  });

  // @proves bounds-161
  test('are there among any number of others, in bounded memory, with no more than they have sent', () => {
    const keys = new BusiestKeys(() => 0);
    // A key with more than a five-hundredth, after as many others as there are places, and before and between others.
    for (const index of times(500, (each) => each)) keys.count(request(`early ${index}`));
    for (const index of times(100_000, (each) => each)) {
      keys.count(request(`other ${index}`));
      if (index % 300 === 0) keys.count(request('busy'));
    }
    const { keys: counted, byRequests, byRefusals } = keys.report();
    expect(byRequests).toHaveLength(20);
    expect(byRefusals).toEqual([]);
    const busy = byRequests.find(({ apiKeyId }) => apiKeyId === 'busy');
    expect(busy).toBeDefined();
    expect(busy?.requests).toBeGreaterThan(0);
    expect(busy?.requests).toBeLessThanOrEqual(334);
    expect(counted).toBeLessThanOrEqual(500);
  });
});
