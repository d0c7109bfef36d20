import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { type Chance, createChance } from '../../tools/chance.ts';

/** Virtual time begins here: 2027-01-15T08:00:00Z. */
const EPOCH_MS = 1_800_000_000_000;

/** The turns of Node's event loop in which all effects of an event end. More turns give the same trace. */
const TURNS_TO_REST = 4;

/** The number of cancelled events from which they are discarded. */
const MAX_CANCELLED = 1000;

/** How long an event that takes time keeps its node busy; milliseconds. */
const MIN_BUSY_MS = 1;
const MAX_BUSY_MS = 300;

/** Matches active resources of Node that are work of its thread pool; virtual time waits for them. */
const REAL_WORK = /req|work|random/i;

const realImmediate = setImmediate;

/** An event at a time of the machine. */
interface Event {
  readonly atMs: number;
  /** Events at the same time happen in the order of their scheduling, as in Node. */
  readonly number: number;
  readonly node: SimulatedNode;
  readonly happen: () => void;
  isCancelled: boolean;
}

/** A process on the machine. Code finds its process through the asynchronous context. */
export class SimulatedNode {
  readonly name: string;
  readonly machine: Machine;
  isDead = false;
  isPaused = false;
  /** The time until which its processor computes: its next event happens then, while other nodes go on. */
  busyUntilMs = 0;
  /** Whether its events may take time. */
  readonly takesTime: boolean;
  /** The text that it has written to standard output. */
  output = '';
  /** The offset of its wall clock from the machine's; milliseconds. */
  clockErrorMs = 0;
  /** The resources that a kill releases, as the kernel does: sockets, ports, files. */
  readonly resources = new Set<{ release(): void }>();

  constructor(name: string, machine: Machine, takesTime = false) {
    this.name = name;
    this.machine = machine;
    this.takesTime = takesTime;
  }

  /** Runs code, and everything that it starts, on this node. */
  run<Result>(code: () => Result): Result {
    return running.run(this, code);
  }

  /** Suspends the node: its events wait, and so do bytes for it. */
  pause(): void {
    this.machine.note(`${this.name} is suspended`);
    this.isPaused = true;
  }

  resume(): void {
    this.machine.note(`${this.name} continues`);
    this.isPaused = false;
    this.machine.continue(this);
  }

  /** Kills the node: none of its code runs again; only bytes that it has sent or written to disk remain. */
  kill(): void {
    this.machine.note(`${this.name} is killed`);
    this.isDead = true;
    for (const resource of [...this.resources]) resource.release();
    this.resources.clear();
  }
}

const running = new AsyncLocalStorage<SimulatedNode>();
let machine: Machine | undefined;

/** Returns the node on which the current code runs. */
export function here(): SimulatedNode {
  if (!machine) throw new Error('no machine is on');
  const node = running.getStore();
  return node?.machine === machine ? node : machine.outside;
}

/**
 * A computer whose time passes only while nothing happens: a clock, a random source and a queue of events. Its behaviour is a
 * function of its seed, and of the code that runs on it.
 */
export class Machine {
  /** The random source. */
  readonly chance: Chance;
  /** The node of code that belongs to no other. */
  readonly outside: SimulatedNode = new SimulatedNode('outside', this);
  /** The number of events so far. */
  events = 0;
  /** The share of events that take time, among those of nodes with `takesTime`. */
  busyShare = 0;
  #nowMs = 0;
  #scheduled = 0;
  /** The number of promises in `hold`. */
  #held = 0;
  #queue: Event[] = [];
  #cancelled = 0;
  /** Events of suspended nodes. */
  #suspended: Event[] = [];
  readonly #trace = createHash('sha256');
  readonly #lastLines: string[] = [];
  readonly #keptLines: number;

  /** @param keptLines how many lines of the trace are kept for display */
  constructor(seed: number, keptLines = 40) {
    this.chance = createChance(seed);
    this.#keptLines = keptLines;
  }

  /** Makes this the machine of the process; there is one at a time. */
  turnOn(): this {
    machine = this;
    return this;
  }

  /** Milliseconds since the machine was turned on. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Reads the wall clock of a node. */
  wallClockMs(node: SimulatedNode): number {
    return Math.floor(EPOCH_MS + this.#nowMs + node.clockErrorMs);
  }

  /** Adds a line to the trace, which is the same in each run of a seed. */
  note(line: string): void {
    const timed = `${this.#nowMs.toFixed(3)} ${line}`;
    this.#trace.update(`${timed}\n`);
    this.#lastLines.push(timed);
    if (this.#lastLines.length > this.#keptLines) this.#lastLines.shift();
  }

  /** Returns a hash of all lines of the trace, and the last of them. */
  trace(): { readonly hash: string; readonly lines: readonly string[] } {
    return { hash: this.#trace.copy().digest('hex').slice(0, 16), lines: this.#lastLines };
  }

  /** Schedules an event, which is dropped if its node is dead by then. */
  schedule(delayMs: number, happen: () => void, node: SimulatedNode = here()): { cancel(): void } {
    this.#scheduled += 1;
    const event: Event = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      number: this.#scheduled,
      node,
      happen,
      isCancelled: false,
    };
    push(this.#queue, event);
    return {
      cancel: () => {
        event.isCancelled = true;
        this.#cancelled += 1;
        this.#dropCancelled();
      },
    };
  }

  /** Removes cancelled events, which would otherwise fill the queue. */
  #dropCancelled(): void {
    if (this.#cancelled < MAX_CANCELLED || this.#cancelled < this.#queue.length / 2) return;
    this.#queue = this.#queue.filter(({ isCancelled }) => !isCancelled);
    this.#cancelled = 0;
  }

  /** Reschedules the events that waited while a node was suspended. */
  continue(node: SimulatedNode): void {
    const waiting = this.#suspended;
    this.#suspended = [];
    for (const event of waiting) {
      if (event.node === node) push(this.#queue, Object.assign(event, { atMs: Math.max(event.atMs, this.#nowMs) }));
      else this.#suspended.push(event);
    }
  }

  /**
   * Runs one event after another until a promise is settled.
   *
   * @throws Error when nothing remains that could settle it
   */
  async runUntil<Result>(promise: Promise<Result>): Promise<Result> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    for (;;) {
      await this.#rest();
      if (isSettled) return promise;
      const event = this.#next();
      if (!event) throw new Error('nothing is scheduled that could settle the awaited promise');
      this.#nowMs = event.atMs;
      this.events += 1;
      event.happen();
      const { node } = event;
      if (this.busyShare > 0 && node.takesTime && this.chance.number() < this.busyShare) {
        node.busyUntilMs = this.#nowMs + this.chance.between(MIN_BUSY_MS, MAX_BUSY_MS);
        this.note(`${node.name} computes until ${node.busyUntilMs.toFixed(3)}`);
      }
    }
  }

  /** Waits for work outside the queue: meanwhile no event happens, and no time passes. */
  async hold<Result>(work: Promise<Result>): Promise<Result> {
    this.#held += 1;
    try {
      return await work;
    } finally {
      this.#held -= 1;
    }
  }

  #next(): Event | undefined {
    for (;;) {
      const event = this.#queue.pop();
      if (!event) return undefined;
      if (event.isCancelled || event.node.isDead) continue;
      if (event.node.isPaused) this.#suspended.push(event);
      else if (event.node.busyUntilMs <= event.atMs) return event;
      else push(this.#queue, Object.assign(event, { atMs: event.node.busyUntilMs }));
    }
  }

  async #rest(): Promise<void> {
    for (let turns = 0; turns < TURNS_TO_REST; turns += 1) {
      await new Promise((resolve) => realImmediate(resolve));
      if (this.#held > 0 || process.getActiveResourcesInfo().some((name) => REAL_WORK.test(name))) turns = -1;
    }
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);

/** Adds an event to a queue that is processed from its end. */
function push(queue: Event[], event: Event): void {
  let [from, to] = [0, queue.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isBefore(event, queue[middle] as Event)) from = middle + 1;
    else to = middle;
  }
  queue.splice(from, 0, event);
}
