import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type EndpointHealth, HEALTHY, healthAfter } from '../../relay/endpoint-health.ts';
import { afterFailure, RETRY_PAUSES_MS, WINDOW } from '../../relay/retries.ts';
import { Schedule } from '../../relay/schedule.ts';
import { DELIVERED, type Outcome } from '../../relay/send.ts';

const SECOND_MS = 1000;
const DAY_MS = 86_400_000;

/** Returns the state of an endpoint after a request that began and ended at the same time. */
const tried = (health: EndpointHealth, outcome: Outcome, now: number): EndpointHealth =>
  healthAfter(health, outcome, { beganAt: now, now, random: 0.5 });

/** Returns the state of an endpoint after outcomes a second apart. */
const seeing = (...codes: string[]): EndpointHealth =>
  codes.reduce((health, code, index) => tried(health, { code }, index * SECOND_MS), HEALTHY);

const LEAD = { attempts: 0, unacknowledged: 1, random: 0.5 };

// @proves relay-5
describe('an endpoint', () => {
  test('an endpoint becomes slow at the fifth failure in a row, and open by any success', () => {
    expect(seeing(...Array(4).fill('HTTP_500')).state).toBe('open');
    expect(seeing(...Array(5).fill('HTTP_500')).state).toBe('slow');
    expect(seeing(...Array(4).fill('TIMEOUT'), DELIVERED, 'TIMEOUT')).toEqual({ ...HEALTHY, failures: 1 });
    expect(seeing(...Array(9).fill('TLS'), DELIVERED)).toEqual({ ...HEALTHY, maxInFlight: 2 });
  });

  test.each(['HTTP_429', 'HTTP_502', 'HTTP_504'])('an endpoint becomes slow at once after %s', (code) => {
    expect(seeing(code).state).toBe('slow');
  });

  test('an endpoint is gone after a 410, and only a change of its file opens it', () => {
    expect(seeing('HTTP_410').state).toBe('gone');
    expect(seeing(...Array(5).fill('HTTP_500'), 'HTTP_410', DELIVERED, 'HTTP_500').state).toBe('gone');
  });

  test('a slow endpoint is probed after pauses up to a minute, and every 15 minutes after a day', () => {
    let health = seeing(...Array(5).fill('HTTP_500'));
    const pauses: number[] = [];
    for (let now = health.nextProbeAt; health.state === 'slow'; now = health.nextProbeAt) {
      health = tried(health, { code: 'HTTP_500' }, now);
      pauses.push(health.nextProbeAt - now);
    }
    expect(pauses.slice(0, 5)).toEqual([10, 20, 40, 60, 60].map((seconds) => seconds * SECOND_MS));
    expect(health.state).toBe('paused');
    expect(pauses.at(-1)).toBe(15 * 60 * SECOND_MS);
    expect(pauses.length).toBeGreaterThan(1400);
  });

  // @proves relay-12
  test.each(['HTTP_429', 'HTTP_503'])(
    'an endpoint that answers %s gets its Retry-After, and longer pauses only if it repeats it',
    (code) => {
      const pauses: number[] = [];
      let health = HEALTHY;
      const ask = (seconds: number) => {
        const now = health.nextProbeAt;
        health = tried(health, { code, retryAfterMs: seconds * SECOND_MS }, now);
        pauses.push((health.nextProbeAt - now) / SECOND_MS);
      };
      for (const seconds of [1, 1, 1, 3, 1, 1, 1, 1, 86_400]) ask(seconds);
      health = tried(health, { code: DELIVERED }, health.nextProbeAt);
      for (const seconds of [2, 0]) ask(seconds);
      expect(pauses).toEqual([1, 2, 4, 24, 16, 32, 60, 60, 86_400, 2, 2]);
    },
  );

  test('an endpoint is tried again a second after a 429 without Retry-After', () => {
    const first = tried(HEALTHY, { code: 'HTTP_429' }, 0);
    expect(first.nextProbeAt).toBe(SECOND_MS);
    expect(tried(first, { code: 'HTTP_429' }, SECOND_MS).nextProbeAt).toBe(3 * SECOND_MS);
  });

  test('requests sent before an endpoint became slow do not count as probes', () => {
    const slow = seeing(...Array(5).fill('HTTP_500'));
    const later = Array(7).fill(slow.nextProbeAt - 1);
    for (const code of ['TIMEOUT', DELIVERED])
      expect(later.reduce((health, now) => tried(health, { code }, now), slow)).toEqual(slow);
  });

  test('late refusals of requests sent before a pause do not prolong it', () => {
    const schedule = new Schedule<State>(2);
    for (const id of ['first', 'second']) schedule.offer(aState(id));
    const [first, second] = [schedule.begin(0), schedule.begin(0)] as [State, State];
    const refusal = { code: 'HTTP_429', retryAfterMs: SECOND_MS };
    schedule.end(first, refusal, 0, 0.5);
    schedule.end(second, refusal, 5 * SECOND_MS, 0.5);
    expect(schedule.health.nextProbeAt).toBe(6 * SECOND_MS);
  });
});

// @proves relay-4
describe('a lead that fails', () => {
  test('a failed lead is retried like in Standard Webhooks, and set aside at the tenth failure', () => {
    const minutes = [1 / 12, 5, 30, 120, 300, 600, 840, 1200, 1440];
    expect(RETRY_PAUSES_MS).toEqual(minutes.map((each) => each * 60 * SECOND_MS));
    const findPause = (attempts: number, random: number) =>
      afterFailure(HEALTHY, { code: 'HTTP_500' }, { ...LEAD, attempts, random });
    for (const [attempts, pauseMs] of RETRY_PAUSES_MS.entries()) {
      expect(findPause(attempts, 0)).toEqual({ setAside: true, pauseMs: pauseMs * 0.8 });
      expect(findPause(attempts, 1)).toEqual({ setAside: true, pauseMs: pauseMs * 1.2 });
    }
    for (const attempts of [9, 10, 1000])
      expect(findPause(attempts, 0)).toEqual({ setAside: true, pauseMs: undefined });
  });

  test('a failed lead is not retried before its Retry-After', () => {
    const outcome = { code: 'HTTP_500', retryAfterMs: DAY_MS };
    expect(afterFailure(HEALTHY, outcome, LEAD)).toEqual({ setAside: true, pauseMs: DAY_MS });
  });

  test('a requested pause, a 410 or a failure of a slow endpoint does not count against a lead', () => {
    const slow = seeing(...Array(5).fill('HTTP_500'));
    expect(afterFailure(slow, { code: 'HTTP_500' }, LEAD)).toEqual({ setAside: false });
    for (const outcome of [{ code: 'HTTP_410' }, { code: 'HTTP_429' }, { code: 'HTTP_503', retryAfterMs: 0 }])
      expect(afterFailure(HEALTHY, outcome, LEAD)).toEqual({ setAside: false });
    expect(afterFailure(HEALTHY, { code: 'HTTP_503' }, LEAD).setAside).toBe(true);
  });

  test('a whole window of failed leads makes way for others, but is not set aside for good', () => {
    const slow = { ...seeing(...Array(5).fill('HTTP_500')), failures: WINDOW };
    const full = { ...LEAD, unacknowledged: WINDOW };
    expect(afterFailure(slow, { code: 'HTTP_500' }, full).pauseMs).toBeGreaterThan(0);
    expect(afterFailure(slow, { code: 'HTTP_500' }, { ...full, attempts: 9 })).toEqual({ setAside: false });
    expect(afterFailure(slow, { code: 'HTTP_500' }, { ...full, unacknowledged: WINDOW - 1 })).toEqual({
      setAside: false,
    });
  });
});

interface State {
  readonly lead: { readonly studioId: string; readonly id: string };
  readonly revision: bigint;
  readonly attempts: number;
}

const aState = (id: string): State => ({ lead: { studioId: 'a', id }, revision: 1n, attempts: 0 });

/** A core's delivery of one lead to one consumer. */
interface Delivery {
  revision: bigint;
  /** Infinity: set aside for good. */
  due: number;
  attempts: number;
}

/** A model of a core with a consumer, of a relay that may be killed, and of a receiver. The only clock is `now`. */
class World {
  now = 0;
  readonly deliveries = new Map<string, Delivery>();
  /** The newest state of each lead, and the newest that the receiver accepted. */
  readonly newest = new Map<string, bigint>();
  readonly taken = new Map<string, bigint>();
  readonly inFlight: State[] = [];
  /** Outcomes that the relay has not reported to the core yet. */
  readonly unreported: { readonly change: State; readonly retryAt: number | undefined }[] = [];
  schedule!: Schedule<State>;
  /** The states sent on this watch. The core sends each state once. */
  #sent = new Set<string>();
  readonly #takes: (change: State) => string;

  constructor(takes: (change: State) => string) {
    this.#takes = takes;
    this.restart();
  }

  change(id: string): void {
    const revision = (this.newest.get(id) ?? 0n) + 1n;
    this.newest.set(id, revision);
    const due = Math.min(this.deliveries.get(id)?.due ?? this.now, this.now);
    this.deliveries.set(id, { revision, due, attempts: 0 });
  }

  /** Kills and restarts the relay, which forgets everything. */
  restart(): void {
    this.inFlight.length = 0;
    this.unreported.length = 0;
    this.schedule = new Schedule(3);
    this.#sent = new Set();
  }

  /** Ends the watch and begins the next. */
  watchAgain(): void {
    this.schedule.forget();
    this.#sent = new Set();
  }

  feed(): void {
    const due = [...this.deliveries].filter(([, delivery]) => delivery.due <= this.now).slice(0, WINDOW);
    const present = new Set<string>();
    for (const [id, { revision, attempts, due: since }] of due) {
      const version = `${id} ${revision} ${since}`;
      present.add(version);
      if (!this.#sent.has(version)) this.schedule.offer({ lead: { studioId: 'a', id }, revision, attempts });
    }
    this.#sent = present;
  }

  begin(): void {
    const change = this.schedule.begin(this.now);
    if (!change) return;
    expect(this.inFlight.map(({ lead }) => lead.id)).not.toContain(change.lead.id);
    this.inFlight.push(change);
  }

  end(index: number, random: number): void {
    const [change] = this.inFlight.splice(index % Math.max(1, this.inFlight.length), 1);
    if (!change) return;
    const code = this.#takes(change);
    const { id } = change.lead;
    if (code === DELIVERED) {
      expect(change.revision).toBeGreaterThanOrEqual(this.taken.get(id) ?? 0n);
      this.taken.set(id, change.revision);
    }
    const failure = this.schedule.end(change, { code }, this.now, random);
    if (failure && !failure.setAside) return;
    const retryAt = failure && this.now + (failure.pauseMs ?? Number.POSITIVE_INFINITY);
    this.unreported.push({ change, retryAt });
  }

  report(index: number): void {
    const [reported] = this.unreported.splice(index % Math.max(1, this.unreported.length), 1);
    if (!reported) return;
    const { change, retryAt } = reported;
    const delivery = this.deliveries.get(change.lead.id);
    if (delivery && delivery.revision <= change.revision) {
      if (retryAt === undefined) this.deliveries.delete(change.lead.id);
      else Object.assign(delivery, { due: retryAt, attempts: delivery.attempts + 1 });
    }
    this.schedule.finish(change);
  }

  /** Takes all steps that are possible now. */
  step(): void {
    this.feed();
    for (let each = 0; each < 4; each += 1) this.begin();
    while (this.inFlight.length > 0) this.end(0, 0.5);
    while (this.unreported.length > 0) this.report(0);
  }

  /** Takes all possible steps, minute by minute, for a duration. */
  endure(durationMs: number): void {
    for (const end = this.now + durationMs; this.now < end; ) {
      this.step();
      this.now = Math.max(this.now + 60 * SECOND_MS, this.schedule.health.nextProbeAt);
    }
  }

  /**
   * Lets time pass and takes all possible steps until the core has nothing more to send.
   *
   * @param changing the id of a lead that changes whenever the endpoint is not open
   */
  finish(changing?: string): void {
    for (let step = 0; [...this.deliveries.values()].some(({ due }) => due < Number.POSITIVE_INFINITY); step += 1) {
      if (step > 20_000) throw new Error(`deliveries still wait after ${step} steps`);
      if (changing !== undefined && this.schedule.health.state !== 'open') this.change(changing);
      this.step();
      const { state, nextProbeAt } = this.schedule.health;
      const dues = [...this.deliveries.values()].map(({ due }) => due).filter((due) => due > this.now);
      if (state !== 'open') this.now = Math.max(this.now, nextProbeAt);
      // A slow endpoint is probed with a lead, so time passes until one is due for it, too.
      if (dues.length > 0 && dues.length === this.deliveries.size) this.now = Math.max(this.now, Math.min(...dues));
    }
  }

  get setAside(): string[] {
    return [...this.deliveries].flatMap(([id, { due }]) => (due === Number.POSITIVE_INFINITY ? [id] : []));
  }
}

const EVENTS = fc.array(
  fc.record({
    what: fc.constantFrom(...'change change feed begin begin end end report report wait watch file kill'.split(' ')),
    number: fc.nat(7),
    random: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  { minLength: 20, maxLength: 200 },
);

/** Applies the events in order. */
function apply(world: World, events: readonly { what: string; number: number; random: number }[]): void {
  for (const { what, number, random } of events) {
    if (what === 'change') world.change(`${number}`);
    if (what === 'feed') world.feed();
    if (what === 'begin') world.begin();
    if (what === 'end') world.end(number, random);
    if (what === 'report') world.report(number);
    if (what === 'wait') world.now += random * 4000 * 2 ** number;
    if (what === 'file') world.schedule.retry();
    if (what === 'watch') world.watchAgain();
    if (what === 'kill') world.restart();
  }
}

const RUNS = { numRuns: 500 };

// @proves relay-1
describe('under any order of events, with kills of the relay between any two steps', () => {
  test('a receiver eventually has the newest state of each lead, in order, one request at a time', () => {
    fc.assert(
      fc.property(
        EVENTS,
        fc.infiniteStream(fc.constantFrom(DELIVERED, DELIVERED, 'HTTP_500', 'HTTP_429')),
        (events, codes) => {
          let isOver = false;
          const world = new World(() => (isOver ? DELIVERED : (codes.next().value as string)));
          apply(world, events);
          isOver = true;
          world.finish();
          expect(world.taken).toEqual(world.newest);
        },
      ),
      RUNS,
    );
  });

  // @proves relay-5
  test('an outage sets nothing aside for good', () => {
    fc.assert(
      fc.property(EVENTS, fc.constantFrom('HTTP_500', 'TIMEOUT', 'HTTP_502'), (events, code) => {
        let isOver = false;
        const world = new World(() => (isOver ? DELIVERED : code));
        apply(
          world,
          events.filter(({ what }) => what !== 'kill'),
        );
        world.endure(6 * DAY_MS);
        expect(world.setAside).toEqual([]);
        isOver = true;
        world.finish();
        expect(world.taken).toEqual(world.newest);
      }),
      { numRuns: 30 },
    );
  });

  // @proves relay-4
  test('a lead that only fails is set aside after ten attempts and blocks no other', () => {
    fc.assert(
      fc.property(EVENTS, (events) => {
        const tried = new Map<bigint, number>();
        const world = new World(({ lead, revision }) => {
          if (lead.id === '0') tried.set(revision, (tried.get(revision) ?? 0) + 1);
          return lead.id === '0' ? 'HTTP_400' : DELIVERED;
        });
        apply(world, events);
        world.finish('1');
        const { 0: _, ...others } = Object.fromEntries(world.newest);
        expect(Object.fromEntries(world.taken)).toEqual(others);
        const newest = world.newest.get('0');
        expect(world.setAside).toEqual(newest === undefined ? [] : ['0']);
        if (newest !== undefined) expect(tried.get(newest)).toBeGreaterThanOrEqual(10);
      }),
      RUNS,
    );
  });
});

// @proves relay-3
test('once its file changes, a slow endpoint is tried at once; requests in flight do not count', () => {
  const schedule = new Schedule<State>(1);
  for (let id = 0; id < 8; id += 1) schedule.offer(aState(`${id}`));
  for (let now = 0; now < 5; now += 1) schedule.end(schedule.begin(now) as State, { code: 'HTTP_500' }, now, 0.5);
  const former = schedule.begin(schedule.health.nextProbeAt) as State;
  const now = schedule.health.nextProbeAt + 1;
  expect(schedule.begin(now)).toBeUndefined();
  schedule.retry();
  const next = schedule.begin(now) as State;
  expect(next.lead.id).not.toBe(former.lead.id);
  const { health } = schedule;
  expect(schedule.end(former, { code: 'HTTP_410', retryAfterMs: DAY_MS }, now, 0.5)).toEqual({ setAside: false });
  expect(schedule.health).toEqual(health);
  expect(schedule.end(next, { code: DELIVERED }, now, 0.5)).toBeUndefined();
  expect(schedule.health.state).toBe('open');
  expect(schedule.begin(now)).toBeDefined();
});

/** Receivers that accept a limited number of requests a second: by fixed windows, or by a token bucket. */
const LIMITS = {
  window(perSecond: number) {
    const taken = new Map<number, number>();
    return (now: number) => {
      const second = Math.floor(now / SECOND_MS);
      const count = (taken.get(second) ?? 0) + 1;
      taken.set(second, count);
      return count <= perSecond;
    };
  },
  bucket(perSecond: number) {
    let [level, since] = [perSecond, 0];
    return (now: number) => {
      level = Math.min(perSecond, level + ((now - since) * perSecond) / SECOND_MS);
      since = now;
      if (level < 1) return false;
      level -= 1;
      return true;
    };
  },
};

interface Limited {
  readonly limit: keyof typeof LIMITS;
  readonly perSecond: number;
  readonly latencyMs: number;
  /** The response to a request over the limit. */
  readonly refusal: Outcome;
}

/**
 * Sends waiting leads to a limited receiver for twenty seconds of simulated time.
 *
 * @returns the number of requests that it accepted per second
 */
function ratePerSecond({ limit, perSecond, latencyMs, refusal }: Limited): number {
  const takes = LIMITS[limit](perSecond);
  const schedule = new Schedule<State>(8);
  const inFlight: { readonly change: State; readonly endsAt: number; readonly outcome: Outcome }[] = [];
  let [now, offered, taken] = [0, 0, 0];
  /** The end of the pause that the receiver asked for, and the successes since the last refusal, infinite before the first. */
  let [askedUntil, successes] = [0, Number.POSITIVE_INFINITY];
  const offer = () => {
    schedule.offer(aState(`${offered}`));
    offered += 1;
  };
  for (let lead = 0; lead < 16; lead += 1) offer();
  while (now < 20 * SECOND_MS) {
    for (let change = schedule.begin(now); change; change = schedule.begin(now)) {
      expect(now >= askedUntil && inFlight.length <= successes).toBe(true);
      inFlight.push({ change, endsAt: now + latencyMs, outcome: takes(now) ? { code: DELIVERED } : refusal });
    }
    const [next] = inFlight;
    now = next?.endsAt ?? schedule.health.nextProbeAt;
    if (!next) continue;
    inFlight.shift();
    const { change, outcome } = next;
    const failure = schedule.end(change, outcome, now, 0.5);
    if (failure) {
      expect(failure).toEqual({ setAside: false });
      askedUntil = Math.max(askedUntil, now + (outcome.retryAfterMs ?? 0));
      successes = 0;
    } else {
      schedule.finish(change);
      offer();
      [taken, successes] = [taken + 1, successes + 1];
    }
  }
  return taken / 20;
}

// @proves relay-12
test('a receiver limited to N requests a second gets 3/4 of them, and none during its pauses', () => {
  const refusals = [
    { code: 'HTTP_429', retryAfterMs: SECOND_MS },
    { code: 'HTTP_503', retryAfterMs: SECOND_MS },
    { code: 'HTTP_429' },
  ];
  fc.assert(
    fc.property(
      fc.record({
        limit: fc.constantFrom<keyof typeof LIMITS>('window', 'bucket'),
        perSecond: fc.integer({ min: 1, max: 100 }),
        latencyMs: fc.integer({ min: 1, max: 20 }),
        refusal: fc.constantFrom(...refusals),
      }),
      (limited) => {
        expect(ratePerSecond(limited)).toBeGreaterThanOrEqual(0.75 * limited.perSecond);
      },
    ),
    { numRuns: 50 },
  );
});

// @proves relay-11
test('a lead that the feed does not send again is dropped, even if it fails in flight', () => {
  const schedule = new Schedule<State>(2);
  for (const id of ['gone', 'kept', 'waiting']) schedule.offer(aState(id));
  const inFlight = [schedule.begin(0), schedule.begin(0)] as State[];
  schedule.forget();
  schedule.offer(aState('kept'));
  schedule.retry();
  for (const each of inFlight) expect(schedule.end(each, { code: 'HTTP_502' }, 0, 0.5)).toEqual({ setAside: false });
  expect([schedule.begin(1)?.lead.id, schedule.begin(1)]).toEqual(['kept', undefined]);
});

test('a lead is delivered although more leads than a window holds keep failing', () => {
  const world = new World(({ lead }) => (lead.id.startsWith('bad') ? 'HTTP_400' : DELIVERED));
  for (let each = 0; each < WINDOW + 50; each += 1) world.change(`bad-${each}`);
  world.change('good');
  while (!world.taken.has('good') && world.now < DAY_MS) world.endure(1);
  expect(world.taken.has('good')).toBe(true);
  expect(world.setAside).toEqual([]);
});
