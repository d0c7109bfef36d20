import { describe, expect, test } from 'vitest';
import { InFlightRequests } from '../../gateway/in-flight-requests.ts';

const sent = (count: number) => {
  const requests = new InFlightRequests<string>();
  for (let index = 0; index < count; index += 1) requests.add(`request ${index}`);
  return requests;
};

describe('sent requests', () => {
  test('are found by index, once each, in any order', () => {
    const requests = sent(3);

    expect([2, 0, 2, 1, 0].map((index) => requests.take(index))).toEqual([
      'request 2',
      'request 0',
      undefined,
      'request 1',
      undefined,
    ]);
  });

  test('keep their indices when earlier ones are released', () => {
    const requests = sent(2000);
    for (let index = 0; index < 1500; index += 1) requests.take(index);

    requests.add('request 2000');

    expect(requests.count).toBe(2001);
    expect([1499, 1500, 1999, 2000].map((index) => requests.take(index))).toEqual([
      undefined,
      'request 1500',
      'request 1999',
      'request 2000',
    ]);
  });

  test('one without a result does not block later ones', () => {
    const requests = sent(2000);
    for (let index = 1; index < 2000; index += 1) expect(requests.take(index)).toBe(`request ${index}`);

    expect(requests.pending()).toEqual(['request 0']);
    expect(requests.take(0)).toBe('request 0');
    expect(requests.pending()).toEqual([]);
  });

  test.each([-1, 3, 2 ** 31, 0.5])('an unknown index has none, and changes nothing: %s', (index) => {
    const requests = sent(3);

    expect(requests.take(index)).toBeUndefined();
    expect(requests.count).toBe(3);
    expect(requests.pending()).toEqual(['request 0', 'request 1', 'request 2']);
  });
});
