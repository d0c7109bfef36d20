import { describe, expect, test } from 'vitest';
import { uuidFault } from '../../common/rules/field-rules.ts';
import { idGenerator, newId, timeOfId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';

describe('ids', () => {
  test('ids are UUIDs of version 7 in lower case', () => {
    for (const id of times(100, newId)) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(uuidFault(id)).toBeUndefined();
    }
  });

  test('ids return to the right time after a fast clock, but not after a small step back', () => {
    const aheadMs: number[] = [];
    let clock = 1_750_000_000_000;
    const next = idGenerator(
      () => clock,
      (ms) => aheadMs.push(ms),
    );
    const timeAt = (time: number) => {
      clock = time;
      return timeOfId(next()).getTime();
    };
    const [now, second, year] = [clock, 1000, 365 * 86_400_000];
    expect(timeAt(now + year)).toBe(now + year);
    expect(timeAt(now)).toBe(now);
    expect(timeAt(now + 60 * second)).toBe(now + 60 * second);
    expect(timeAt(now)).toBe(now + 60 * second);
    expect(timeAt(now - second)).toBe(now - second);
    expect(aheadMs).toEqual([year, 61 * second]);
  });

  test('ids of one generator differ and grow while its clock stands still', () => {
    const next = idGenerator(() => 1_750_000_000_000);
    const ids = times(100_000, next);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(ids.toSorted());
  });

  test('ids of two generators have different random parts', () => {
    const [one, other] = [idGenerator(() => 1), idGenerator(() => 1)];
    const parts = times(1000, () => [one(), other()].map((id) => id.slice(-11))).flat();
    expect(new Set(parts).size).toBe(parts.length);
  });

  test('ids contain the time of their creation', () => {
    expect(timeOfId('017f22e2-79b0-7cc3-98c4-dc0c0c07398f').toISOString()).toBe('2022-02-22T19:22:22.000Z');
  });
});
