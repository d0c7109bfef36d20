import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RetentionStore, RetentionTime } from '../../src/store/port/retention.ts';
import type { Store } from '../../src/store/store.ts';
import { RetentionLease } from '../../src/usecases/retention-lease.ts';
import { DAY_MS, NOW } from '../support/builders.ts';

const LOOK_MS = 60_000;
const LEASE_MS = 50_000;

/** Returns a store of the retention time that behaves as the contract suite requires. */
function aRetentionStore(stored: RetentionTime | null = null): RetentionStore {
  return {
    findRetentionTime: async () => stored,
    async putRetentionTime(version, time) {
      if (version !== (stored?.version ?? null)) return false;
      stored = { version: (version ?? 0) + 1, time };
      return true;
    },
  };
}

/** Some cores with clocks that can be set, and the real time. */
class Deployment {
  readonly #store = aRetentionStore() as Store;
  readonly #aheadMs = new Map<number, number>();
  readonly #cores = new Map<number, RetentionLease>();
  realMs = NOW.getTime();
  /** For this long, at least one core has had a fast clock. */
  fastMs = 0;
  /** The leases so far: the real time at which each began, and the retention time that it used. */
  readonly leases: { readonly realMs: number; readonly timeMs: number }[] = [];

  pass(ms: number): void {
    this.realMs += ms;
    if ([...this.#aheadMs.values()].some((aheadMs) => aheadMs > 0)) this.fastMs += ms;
  }

  set = (core: number, aheadMs: number) => this.#aheadMs.set(core, aheadMs);
  restart = (core: number) => this.#cores.delete(core);

  async look(core: number): Promise<Date | null> {
    const clock = () => new Date(this.realMs + (this.#aheadMs.get(core) ?? 0));
    const create = () => new RetentionLease({ store: this.#store, clock }, LEASE_MS, () => this.realMs);
    const leases = this.#cores.get(core) ?? create();
    this.#cores.set(core, leases);
    const time = await leases.take(NOW);
    if (time) this.leases.push({ realMs: this.realMs, timeMs: time.getTime() });
    return time;
  }

  /** Lets time pass while cores try to get the lease at their usual interval. */
  async live(minutes: number, cores: readonly number[]): Promise<Date | null> {
    let last: Date | null = null;
    for (let minute = 0; minute < minutes; minute += 1) {
      for (const core of cores) {
        this.pass(LOOK_MS / cores.length);
        last = (await this.look(core)) ?? last;
      }
    }
    return last;
  }
}

interface ClockEvent {
  readonly kind: string;
  readonly minutes: number;
  readonly core: number;
}

const core = fc.nat(2);
const events = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('live'), minutes: fc.integer({ min: 1, max: 20 }), core }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('off'), minutes: fc.integer({ min: 1, max: 50_000 }), core }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('restart'), minutes: fc.nat(1), core }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('ahead', 'behind'),
        minutes: fc.constantFrom(1, 90, 1e4, 1e6),
        core,
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('right'), minutes: fc.constant(0), core }) },
  ),
  { maxLength: 40 },
);

async function apply(deployment: Deployment, all: readonly ClockEvent[]) {
  for (const { kind, minutes, core } of all) {
    if (kind === 'live') await deployment.live(minutes, core === 2 ? [0, 1, 2] : [core]);
    if (kind === 'off') deployment.pass(minutes * LOOK_MS);
    if (kind === 'restart') deployment.restart(core);
    if (kind === 'ahead') deployment.set(core, minutes * LOOK_MS);
    if (kind === 'behind') deployment.set(core, -minutes * LOOK_MS);
    if (kind === 'right') deployment.set(core, 0);
  }
}

// @proves erasure-11
describe('the retention time', () => {
  test('retention time gets ahead by at most the time that a clock was fast, and then recovers', () =>
    fc.assert(
      fc.asyncProperty(events, async (all) => {
        const deployment = new Deployment();
        await deployment.look(0);
        await apply(deployment, all);
        for (const { realMs, timeMs } of deployment.leases)
          expect(timeMs - realMs).toBeLessThanOrEqual(deployment.fastMs + 2 * LEASE_MS);

        for (const core of [0, 1, 2]) deployment.set(core, 0);
        const [last] = [await deployment.live(3, [0, 1])];
        const behindMs = Math.abs(deployment.realMs - (last?.getTime() ?? deployment.realMs));
        const latest = await deployment.live(Math.ceil(behindMs / LOOK_MS) + 50, [0, 1]);
        expect(deployment.realMs - (latest?.getTime() ?? 0)).toBeLessThanOrEqual(2 * LOOK_MS);
      }),
      { numRuns: 40 },
    ));

  test('retention time does not jump with a clock, however often cores start', async () => {
    const deployment = new Deployment();
    await deployment.live(10, [0, 1]);
    const before = deployment.leases.at(-1)?.timeMs ?? 0;
    for (const core of [0, 1]) deployment.set(core, 365 * DAY_MS);
    for (let start = 0; start < 400; start += 1) {
      deployment.restart(0);
      for (let look = 0; look < 3; look += 1) await deployment.look(0);
      deployment.pass(1000);
    }
    expect(deployment.leases.at(-1)?.timeMs).toBe(before);
    const last = await deployment.live(60, [0, 1]);
    expect((last?.getTime() ?? 0) - before).toBeLessThanOrEqual(2 * (400_000 + 60 * LOOK_MS));
  });

  test('one core gets every retention lease until it stops, and then another core takes over', async () => {
    const deployment = new Deployment();
    const holders: number[] = [];
    for (let second = 0; second < 3600; second += 10) {
      for (const core of [0, 1, 2]) {
        if ((core === holders[0] && second > 1800) || (second + core * 20) % 60 !== 0) continue;
        if (await deployment.look(core)) holders.push(core);
      }
      deployment.pass(10_000);
    }
    expect(holders.length).toBeGreaterThan(50);
    expect(new Set(holders).size).toBe(2);
    const [first, second] = new Set(holders);
    expect(holders.lastIndexOf(first as number)).toBeLessThan(holders.indexOf(second as number));
  });

  test('a missing or unreadable retention time starts at the given time, and never without one', async () => {
    for (const stored of [null, { version: 7, time: null }]) {
      const store = aRetentionStore(stored) as Store;
      const leases = new RetentionLease({ store, clock: () => NOW }, 0);
      for (const first of [null, NOW]) {
        expect(await leases.take(first)).toBeNull();
        expect((await store.findRetentionTime())?.time ?? null).toEqual(first);
      }
      await leases.take(NOW);
      expect(await leases.take(NOW)).toEqual(NOW);
    }
  });
});
