import { type Machine, SimulatedNode } from '../machine/machine.ts';
import { type Entries, type Entry, RedisServer, type Weather } from './redis-server.ts';

/** A sentinel promotes the replica of a primary that has been away for this long; milliseconds. */
const DOWN_AFTER_MS = 500;

/** Shorter than that of a real sentinel, as lives are: after this time a former primary that is back becomes a replica; milliseconds. */
const DEMOTES_AFTER_MS = 1000;

/** The interval at which a sentinel looks at the servers, and a replica at its primary; milliseconds. */
const LOOKS_EVERY_MS = 100;

/** The interval at which entries come to the disk, and the longest time that loading or copying them takes; milliseconds. */
const SAVES_EVERY_MS = 1000;
const LOADS_FOR_MS = 200;

/** The time until a write is at the replica; milliseconds. Now and then it is late. */
const LAG_MS = 2;
const LATE_MS = 300;
const LATE = 0.05;

/** What a server that restarts has of its entries: also those of the last second, or none. */
export type Kept = 'all' | 'saved' | 'none';

/** A process of a server. */
interface Process {
  readonly node: SimulatedNode;
  readonly server: RedisServer;
  saved: Entries;
  /** The process whose writes come here. */
  follows: Process | undefined;
  /** When the last of them comes. */
  arrivesAt: number;
}

/** A request of a key that a server has counted. */
export interface Count {
  readonly apiKeyId: string;
  /** Milliseconds on the clock of the test. */
  readonly atMs: number;
}

interface Ports {
  readonly servers: readonly [number, number];
  readonly sentinel: number;
  readonly unused: number;
}

/**
 * A Redis on a machine: a single one, or a primary, its replica to which writes come later, and a sentinel that promotes it. A former
 * primary goes on counting until the sentinel reaches it.
 */
export class RedisDeployment {
  readonly hasSentinel: boolean;
  readonly weather: Weather = { losses: 0, slowness: 0, refusal: undefined };
  /** Every request that was ever counted, in order, whatever became of the count. */
  readonly counts: Count[] = [];
  readonly #machine: Machine;
  readonly #ports: Ports;
  readonly #fail: (error: Error) => void;
  readonly #processes: Process[] = [];
  readonly #clockErrorsMs = [0, 0];
  #sentinel: SimulatedNode | undefined;
  /** The number of the primary, as the sentinel knows it. */
  #primary = 0;
  #downSince: number | undefined;
  #rivalSince: number | undefined;
  /** Nodes that are cut off from the others. */
  #apart: (node: SimulatedNode) => boolean = () => false;

  constructor(machine: Machine, ports: Ports, fail: (error: Error) => void) {
    this.#machine = machine;
    this.#ports = ports;
    this.#fail = fail;
    this.hasSentinel = machine.chance.number() < 0.5;
    this.start(0, 'none');
    if (!this.hasSentinel) return;
    this.start(1, 'none');
    this.startSentinel();
  }

  /** Its address for gateways. The first of two sentinels does not exist. */
  get url(): string {
    const { servers, sentinel, unused } = this.#ports;
    return this.hasSentinel
      ? `redis+sentinel://127.0.0.1:${unused},127.0.0.1:${sentinel}/quota`
      : `redis://127.0.0.1:${servers[0]}`;
  }

  /** The number of the primary. */
  get primary(): number {
    return this.#primary;
  }

  /** Starts a server with what the process before has left. */
  start(number: number, kept: Kept): void {
    const before = this.#processes[number];
    const node = new SimulatedNode(`redis ${number + 1}`, this.#machine);
    node.clockErrorMs = this.#clockErrorsMs[number] ?? 0;
    const entries = new Map(before && kept !== 'none' ? (kept === 'all' ? before.server.entries : before.saved) : []);
    node.run(() => {
      const server = new RedisServer(entries, before?.server.isPrimary ?? number === 0, {
        weather: this.weather,
        now: Date.now,
        wrote: (command, name, entry) => this.#wrote(started, command, name, entry),
        fail: this.#fail,
      });
      const started: Process = { node, server, saved: new Map(entries), follows: undefined, arrivesAt: 0 };
      this.#processes[number] = started;
      server.start(this.#ports.servers[number] as number);
      if (before) this.#load(started, LOADS_FOR_MS);
      setInterval(() => {
        started.saved = new Map(server.entries);
      }, SAVES_EVERY_MS);
      setInterval(() => this.#follow(started), LOOKS_EVERY_MS);
    });
  }

  #load(process: Process, forMs: number): void {
    process.server.isLoading = true;
    setTimeout(() => {
      process.server.isLoading = false;
    }, Math.random() * forMs);
  }

  kill(number: number): void {
    this.#processes[number]?.node.kill();
  }

  startSentinel(): void {
    const node = new SimulatedNode('sentinel', this.#machine);
    this.#sentinel = node;
    node.run(() => {
      const { servers, sentinel } = this.#ports;
      new RedisServer(new Map(), true, {
        weather: { losses: 0, slowness: 0, refusal: undefined },
        now: Date.now,
        primary: () => servers[this.#primary] as number,
        fail: this.#fail,
      }).start(sentinel);
      setInterval(() => this.#watch(node), LOOKS_EVERY_MS);
    });
  }

  killSentinel(): void {
    this.#sentinel?.kill();
  }

  pause(number: number): void {
    this.#processes[number]?.node.pause();
  }

  resume(number: number): void {
    this.#processes[number]?.node.resume();
  }

  setClock(number: number, aheadMs: number): void {
    this.#clockErrorsMs[number] = aheadMs;
    const { node } = this.#processes[number] ?? {};
    if (node) node.clockErrorMs = aheadMs;
  }

  /** Cuts a server off, and with it the nodes whose names begin so. */
  cutOff(number: number, names: readonly string[]): void {
    const isOfServer = (node: SimulatedNode) => node === this.#processes[number]?.node;
    this.#apart = (node) => isOfServer(node) || names.some((name) => node.name.startsWith(`${name}-`));
  }

  heal(): void {
    this.#apart = () => false;
  }

  isCut(one: SimulatedNode, other: SimulatedNode): boolean {
    return (this.#isOwn(one) || this.#isOwn(other)) && this.#apart(one) !== this.#apart(other);
  }

  #isOwn(node: SimulatedNode): boolean {
    return node === this.#sentinel || this.#processes.some((process) => process.node === node);
  }

  /** Whether the servers agree on who is the primary, and count. */
  isSettled(): boolean {
    const [primary, replica] = [this.#processes[this.#primary], this.#processes[1 - this.#primary]];
    const isUp = (process: Process) => !process.node.isDead && !process.node.isPaused && !process.server.isLoading;
    if (!primary || !isUp(primary) || !primary.server.isPrimary) return false;
    return !replica || (isUp(replica) && !replica.server.isPrimary && replica.follows === primary);
  }

  #wrote(writer: Process, command: string, name: string, entry: Entry | undefined): void {
    const [, apiKeyId] = /^lead-intake:quota:([\da-f-]{36})$/.exec(name) ?? [];
    if (apiKeyId && ['SET', 'INCR'].includes(command)) this.counts.push({ apiKeyId, atMs: performance.now() });
    const replica = this.#processes.find(({ follows }) => follows === writer);
    if (!replica) return;
    this.#arrive(replica, Math.random() < LATE ? LATE_MS : LAG_MS, () => replica.server.put(name, entry));
  }

  /** Lets something of its primary arrive at a replica, in order. */
  #arrive(replica: Process, withinMs: number, what: () => void): void {
    const source = replica.follows;
    const now = this.#machine.nowMs;
    replica.arrivesAt = Math.max(replica.arrivesAt, now + Math.random() * withinMs);
    const arrive = () => {
      if (replica.follows !== source || source === undefined) return;
      // What is lost is copied with all the rest.
      if (this.isCut(source.node, replica.node)) replica.follows = undefined;
      else what();
    };
    replica.node.run(() => setTimeout(arrive, replica.arrivesAt - now));
  }

  /** A replica that does not follow the current process of the other server gets a copy of all that it has. */
  #follow(replica: Process): void {
    if (replica.server.isPrimary) return;
    const source = this.#processes.find((other) => other !== replica);
    if (!source || source === replica.follows || !this.#reaches(replica.node, source)) return;
    replica.follows = source;
    replica.server.isLoading = true;
    const copy = [...source.server.entries];
    this.#arrive(replica, LOADS_FOR_MS, () => {
      replica.server.entries.clear();
      for (const [name, entry] of copy) replica.server.put(name, entry);
      replica.server.isLoading = false;
    });
  }

  #reaches(node: SimulatedNode, { node: other }: Process): boolean {
    return !other.isDead && !other.isPaused && !this.isCut(node, other);
  }

  /** The sentinel looks at both servers. */
  #watch(sentinel: SimulatedNode): void {
    const [primary, other] = [this.#processes[this.#primary], this.#processes[1 - this.#primary]];
    if (!primary || !other) return;
    const now = this.#machine.nowMs;
    const isUp = this.#reaches(sentinel, primary);
    this.#downSince = isUp ? undefined : (this.#downSince ?? now);
    const reachesOther = this.#reaches(sentinel, other);
    this.#rivalSince = isUp && reachesOther && other.server.isPrimary ? (this.#rivalSince ?? now) : undefined;
    if (this.#rivalSince !== undefined && now - this.#rivalSince > DEMOTES_AFTER_MS) {
      this.#machine.note(`${other.node.name} becomes a replica`);
      other.server.isPrimary = false;
    }
    const isDown = this.#downSince !== undefined && now - this.#downSince > DOWN_AFTER_MS;
    if (!isDown || !reachesOther || other.server.isPrimary || other.server.isLoading) return;
    this.#machine.note(`${other.node.name} becomes the primary`);
    other.server.isPrimary = true;
    other.follows = undefined;
    this.#primary = 1 - this.#primary;
    this.#downSince = undefined;
  }
}
