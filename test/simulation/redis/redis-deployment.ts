import { type Machine, SimulatedNode } from '../machine/machine.ts';
import { type Entries, RedisServer, type Weather } from './redis-server.ts';

/** How often entries are saved to the disk, and how long loading them takes at most; milliseconds. */
const SAVES_EVERY_MS = 1000;
const LOADS_FOR_MS = 200;

/** The entries of a restarted server: all, those saved before the last second, or none. */
export type Kept = 'all' | 'saved' | 'none';

/** A request of a key, as a server has counted it. */
export interface Count {
  readonly apiKeyId: string;
  /** Milliseconds on the clock of the test. */
  readonly atMs: number;
}

/** A Redis on a machine. */
export class RedisDeployment {
  readonly weather: Weather = { losses: 0, slowness: 0, refusal: undefined };
  /** Every request that was ever counted, in order, even if the count was lost. */
  readonly counts: Count[] = [];
  readonly #machine: Machine;
  readonly #port: number;
  readonly #fail: (error: Error) => void;
  #node!: SimulatedNode;
  #server!: RedisServer;
  #saved: Entries = new Map();
  #clockErrorMs = 0;
  /** The gateways that still reach it; undefined if it is not cut off. */
  #onItsSide: readonly string[] | undefined;

  constructor(machine: Machine, port: number, fail: (error: Error) => void) {
    this.#machine = machine;
    this.#port = port;
    this.#fail = fail;
    this.start('none');
  }

  /** Starts a server with the entries that the previous process left. */
  start(kept: Kept): void {
    const entries: Entries = new Map({ all: this.#server?.entries, saved: this.#saved, none: [] }[kept]);
    const node = new SimulatedNode('redis', this.#machine);
    node.clockErrorMs = this.#clockErrorMs;
    this.#node = node;
    node.run(() => {
      const server = new RedisServer(entries, {
        weather: this.weather,
        now: Date.now,
        counted: (name) => this.#counted(name),
        fail: this.#fail,
      });
      this.#server = server;
      server.isLoading = true;
      setTimeout(() => {
        server.isLoading = false;
      }, Math.random() * LOADS_FOR_MS);
      server.start(this.#port);
      setInterval(() => {
        this.#saved = new Map(server.entries);
      }, SAVES_EVERY_MS);
    });
  }

  #counted(name: string): void {
    const [, apiKeyId] = /^lead-intake:quota:([\da-f-]{36})$/.exec(name) ?? [];
    if (apiKeyId) this.counts.push({ apiKeyId, atMs: performance.now() });
  }

  kill(): void {
    this.#node.kill();
  }

  pause(): void {
    this.#node.pause();
  }

  resume(): void {
    this.#node.resume();
  }

  setClock(aheadMs: number): void {
    this.#clockErrorMs = aheadMs;
    this.#node.clockErrorMs = aheadMs;
  }

  /** Cuts Redis off from all nodes except the gateways of these names. */
  cutOff(names: readonly string[]): void {
    this.#onItsSide = names;
  }

  heal(): void {
    this.#onItsSide = undefined;
  }

  isCut(one: SimulatedNode, other: SimulatedNode): boolean {
    if (!this.#onItsSide || one === other || (one !== this.#node && other !== this.#node)) return false;
    const client = one === this.#node ? other : one;
    return !this.#onItsSide.some((name) => client.name.startsWith(`${name}-`));
  }

  /** Whether it can count. */
  isReady(): boolean {
    return !this.#node.isDead && !this.#node.isPaused && !this.#server.isLoading;
  }
}
