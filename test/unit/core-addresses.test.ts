import { expect, test } from 'vitest';
import { shuffled } from '../../common/core-connection.ts';

const IPV4 = ['10.1.0.11', '10.1.0.12', '10.1.0.200'].map((address) => ({ address, family: 4 }));
const IPV6 = ['fd00::1', 'fd00::2'].map((address) => ({ address, family: 6 }));

// @proves crashes-26 node-31
test('each address of a core is sometimes tried first, and all of them are tried', () => {
  const firsts = new Set<string | undefined>();
  for (let connection = 0; connection < 500; connection += 1) {
    const order = shuffled(IPV4);
    firsts.add(order[0]?.address);
    expect(order.toSorted((one, other) => (one.address < other.address ? -1 : 1))).toEqual(IPV4);
  }
  expect(firsts.size).toBe(IPV4.length);
});

test('addresses of the family that the system prefers come first', () => {
  for (let connection = 0; connection < 100; connection += 1) {
    expect(shuffled([...IPV6, ...IPV4]).map(({ family }) => family)).toEqual([6, 6, 4, 4, 4]);
    expect(shuffled([...IPV4, ...IPV6]).map(({ family }) => family)).toEqual([4, 4, 4, 6, 6]);
  }
  expect(shuffled([])).toEqual([]);
});
