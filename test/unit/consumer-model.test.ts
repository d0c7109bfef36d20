import { describe, expect, test } from 'vitest';

/*
 * A model of how changes get to named consumers on MongoDB, where no two steps are one: writers, two distributors, two
 * consumers and the unnamed one, creations, backfills and removals take turns at random, and die anywhere.
 */

/** What would be wrong to do; each loses a change. */
const FLAWS = [
  'consumers are read before the marks',
  'a duplicate delivery counts as written',
  'a raised delivery is not looked for',
  'a mark is moved whatever its revision',
  'an acknowledgement names no revision',
  'the unnamed consumer is sent undistributed leads, and acknowledges them',
  'a number is given again',
  'what a consumer that is new meanwhile has counts as left behind',
] as const;
type Flaw = (typeof FLAWS)[number];

interface Lead {
  revision: number;
  /** In the order in which they pass: `marked` is undistributed. */
  mark: 'marked' | 'distributed' | 'acknowledged';
}

interface Consumer {
  readonly number: number;
  readonly name: string;
  /** The revision of each lead that it need not be sent; -1: none. */
  readonly base: readonly number[];
  /** The lead up to which it was sent leads without a change. */
  backfilled: number;
}

/** A process: each step of it is one read or write of the database. */
type Process = Generator<undefined, void>;

const LEADS = [0, 1];
const NAMES = ['relay', 'reporting'];

/** A repeatable generator of numbers below `bound`. */
function chance(seed: number) {
  let state = seed * 2654435761 + 1;
  return (bound: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) % bound;
  };
}

class World {
  readonly leads: Lead[] = LEADS.map(() => ({ revision: 1, mark: 'marked' }));
  /** By consumer and lead: the revision. */
  readonly deliveries = new Map<string, number>();
  /** The highest revision that each consumer has acknowledged; the unnamed one is 0. */
  readonly handled = new Map<string, number>();
  consumers: Consumer[] = [];
  nextNumber = 1;
  readonly #flaw: Flaw | undefined;
  readonly #below: (bound: number) => number;

  constructor(seed: number, flaw?: Flaw) {
    this.#below = chance(seed);
    this.#flaw = flaw;
  }

  /** Runs random processes; returns what is wrong. */
  violation(steps: number): string | undefined {
    const running: Process[] = [];
    for (let step = 0; step < steps; step += 1) {
      if (running.length < 4) running.push(this.#begin());
      const at = this.#below(running.length);
      // Now and then a process dies.
      if (this.#below(30) === 0 || running[at]?.next().done) running.splice(at, 1);
      const found = this.#check();
      if (found !== undefined) return `after ${step} steps ${found}`;
    }
    return undefined;
  }

  #begin(): Process {
    const lead = this.#below(LEADS.length);
    const name = NAMES[this.#below(NAMES.length)] as string;
    const consumer = this.consumers.find((each) => each.name === name);
    const kinds: readonly (() => Process)[] = [
      () => this.#write(lead),
      () => this.#distribute(LEADS),
      () => this.#distribute(LEADS),
      () => this.#unnamed(lead),
      () => (consumer ? this.#consume(consumer, lead) : this.#create(name)),
      () => (consumer ? this.#consume(consumer, lead) : this.#create(name)),
      () => (consumer ? this.#backfill(consumer) : this.#create(name)),
      () => (consumer && this.#below(8) === 0 ? this.#remove(consumer) : this.#removeOrphans()),
    ];
    return (kinds[this.#below(kinds.length)] as () => Process)();
  }

  *#write(lead: number): Process {
    yield;
    const { revision } = this.leads[lead] as Lead;
    this.leads[lead] = { revision: revision + 1, mark: 'marked' };
  }

  *#distribute(leads: readonly number[]): Process {
    const isEarly = this.#flaw === 'consumers are read before the marks';
    const early = [...this.consumers];
    if (early.length === 0) return;
    yield;
    const found = leads
      .map((lead) => ({ lead, ...(this.leads[lead] as Lead) }))
      .filter(({ mark }) => mark === 'marked');
    yield;
    const to = isEarly ? early : [...this.consumers];
    for (const { lead, revision } of found) {
      yield;
      let isStored = true;
      for (const { number } of to) isStored = (yield* this.#deliver(number, lead, revision)) && isStored;
      if (!isStored) continue;
      yield;
      const now = this.leads[lead] as Lead;
      const isAsRead = now.revision === revision && now.mark === 'marked';
      if (isAsRead || this.#flaw === 'a mark is moved whatever its revision') now.mark = 'distributed';
    }
  }

  /** Returns whether the delivery is certainly stored. */
  *#deliver(number: number, lead: number, revision: number): Generator<undefined, boolean> {
    const key = `${number} ${lead}`;
    yield;
    if (!this.deliveries.has(key)) {
      this.deliveries.set(key, revision);
      return true;
    }
    if (this.#flaw === 'a duplicate delivery counts as written') return true;
    yield;
    if ((this.deliveries.get(key) ?? revision) < revision) this.deliveries.set(key, revision);
    if (this.#flaw === 'a raised delivery is not looked for') return true;
    yield;
    return (this.deliveries.get(key) ?? -1) >= revision;
  }

  *#unnamed(lead: number): Process {
    const isFlawed = this.#flaw === 'the unnamed consumer is sent undistributed leads, and acknowledges them';
    const hasConsumers = this.consumers.length > 0 && !isFlawed;
    yield;
    const { revision, mark } = this.leads[lead] as Lead;
    if (mark === 'acknowledged' || (hasConsumers && mark !== 'distributed')) return;
    yield;
    const isShared = this.consumers.length > 0 && !isFlawed;
    yield;
    if (isShared) yield* this.#distribute([lead]);
    const now = this.leads[lead] as Lead;
    if (now.revision !== revision || (isShared && now.mark !== 'distributed')) return;
    now.mark = 'acknowledged';
    this.handled.set(`0 ${lead}`, revision);
  }

  *#consume({ number }: Consumer, lead: number): Process {
    const key = `${number} ${lead}`;
    if (!this.deliveries.has(key)) return;
    yield;
    const { revision } = this.leads[lead] as Lead;
    yield;
    const delivered = this.deliveries.get(key);
    const isLower = delivered !== undefined && delivered <= revision;
    if (isLower || this.#flaw === 'an acknowledgement names no revision') this.deliveries.delete(key);
    this.handled.set(key, Math.max(revision, this.handled.get(key) ?? -1));
  }

  *#create(name: string): Process {
    yield;
    const hasAll = this.#below(2) === 0;
    const number = this.#flaw === 'a number is given again' ? NAMES.indexOf(name) + 1 : this.nextNumber;
    this.nextNumber += 1;
    if (this.consumers.some((each) => each.name === name)) return;
    const base = this.leads.map(({ revision }) => (hasAll ? -1 : revision));
    this.consumers.push({ number, name, base, backfilled: hasAll ? -1 : LEADS.length });
  }

  *#backfill({ number }: Consumer): Process {
    const find = () => this.consumers.find((each) => each.number === number);
    const from = find()?.backfilled ?? LEADS.length;
    const lead = from + 1;
    if (lead > LEADS.length) return;
    yield;
    const { revision = 0 } = this.leads[lead] ?? {};
    if (lead < LEADS.length && !(yield* this.#deliver(number, lead, revision))) return;
    yield;
    const consumer = find();
    if (consumer?.backfilled === from) consumer.backfilled = lead;
  }

  *#remove({ number }: Consumer): Process {
    this.consumers = this.consumers.filter((each) => each.number !== number);
    yield;
    yield* this.#removeOrphans();
  }

  *#removeOrphans(): Process {
    const present = new Set(this.consumers.map(({ number }) => number));
    const next =
      this.#flaw === 'what a consumer that is new meanwhile has counts as left behind' ? 99 : this.nextNumber;
    yield;
    for (const key of this.deliveries.keys()) {
      const number = Number(key.split(' ')[0]);
      if (!present.has(number) && number < next) this.deliveries.delete(key);
    }
  }

  /** Each revision is undistributed, delivered or handled at least as high, or ahead of the backfill. */
  #check(): string | undefined {
    for (const [lead, { revision, mark }] of this.leads.entries()) {
      if (mark === 'acknowledged' && (this.handled.get(`0 ${lead}`) ?? -1) < revision)
        return 'the unnamed consumer misses a change';
      for (const { number, base, backfilled } of this.consumers) {
        const key = `${number} ${lead}`;
        const reached = Math.max(this.deliveries.get(key) ?? -1, this.handled.get(key) ?? -1, base[lead] ?? -1);
        if (mark !== 'marked' && backfilled >= lead && reached < revision) return `consumer ${number} misses a change`;
      }
    }
    return undefined;
  }
}

const STEPS = 120;

/** Returns what is wrong in the first of some random worlds in which something is. */
function search(worlds: number, flaw?: Flaw): string | undefined {
  for (let seed = 1; seed <= worlds; seed += 1) {
    const found = new World(seed, flaw).violation(STEPS);
    if (found !== undefined) return `${found}, of seed ${seed}`;
  }
  return undefined;
}

// @proves feed-8
describe('in a model of named consumers', () => {
  test('no change is missed, whoever dies where', () => {
    expect(search(10_000)).toBeUndefined();
  });

  test.each(FLAWS)('a change is missed if %s', (flaw) => {
    expect(search(10_000, flaw)).toMatch(/misses a change/);
  });
});
