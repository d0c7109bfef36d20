import { Disk } from './log.ts';
import { Member, type PeerMessage, REPLICA_SET } from './member.ts';
import { Weather } from './weather.ts';

/** The usual election timeout, shorter than that of a real replica set, because lives are short; milliseconds. */
const ELECTION_MS = 1500;

/** The shortest and longest latency of a message between members; milliseconds. */
const MIN_LATENCY_MS = 0.1;
const MAX_LATENCY_MS = 1.5;

/** Runs the process of a member. Once it is killed, none of its code runs. */
export interface Host {
  run<Result>(code: () => Result): Result;
  kill(): void;
}

interface Outside {
  /** Receives events for a trace. */
  note?(what: string): void;
  fail(error: Error): void;
  /** Returns a new host for the process of a member. By default, all run here, and none can be killed. */
  host?(member: number): Host;
  /** How long a member waits for a primary, or up to twice as long, before it stands for election; milliseconds. */
  readonly electionMs?: number;
}

const HERE: Host = { run: (code) => code(), kill() {} };

/**
 * A simulated MongoDB replica set with a member for each port, whose processes speak its protocol on sockets of `node:net`.
 * It has elections, majorities, rollbacks and retryable writes, and supports the product's commands.
 */
export class ReplicaSet {
  readonly weather = new Weather();
  readonly #ports: readonly number[];
  readonly #outside: Outside;
  readonly #disks: readonly Disk[];
  readonly #processes: { member: Member; host: Host }[] = [];
  /** Members that exchange no messages with the others. */
  readonly #cutOff = new Set<number>();

  constructor(ports: readonly number[], outside: Outside) {
    this.#ports = ports;
    this.#outside = outside;
    this.#disks = ports.map(() => new Disk());
  }

  /** Returns its address with the name of a database. */
  url(database: string): string {
    return `mongodb://${this.#ports.map((port) => `127.0.0.1:${port}`).join()}/${database}?replicaSet=${REPLICA_SET}`;
  }

  /** Starts the process of a member with the disk of its predecessor. */
  start(number: number): void {
    const host = this.#outside.host?.(number) ?? HERE;
    const member = host.run(() => {
      const around = {
        ports: this.#ports,
        weather: this.weather,
        electionMs: this.#outside.electionMs ?? ELECTION_MS,
        send: (to: number, message: PeerMessage) => this.#deliver(number, to, message),
        note: (what: string) => this.#outside.note?.(what),
        fail: (error: Error) => this.#outside.fail(error),
      };
      return new Member(number, this.#disks[number] as Disk, around);
    });
    this.#processes[number] = { member, host };
    host.run(() => member.start());
  }

  /** Kills the process of a member, which loses data that is not on its disk. */
  kill(number: number): void {
    const process = this.#processes[number];
    if (!process) return;
    process.member.isStopped = true;
    process.host.kill();
  }

  stop(): void {
    for (const { member } of this.#processes) member.stop();
  }

  /** Tells a member to stand for election. */
  elect(number: number): void {
    this.#processes[number]?.member.stand();
  }

  /** Returns the primary of the latest term; undefined if there is none. */
  primary(): Member | undefined {
    const primaries = this.#processes.filter(({ member }) => member.isPrimary && !member.isStopped);
    return primaries.toSorted((a, b) => this.#findTerm(b.member) - this.#findTerm(a.member))[0]?.member;
  }

  #findTerm({ number }: Member): number {
    return this.#disks[number]?.term ?? 0;
  }

  cutOff(member: number): void {
    this.#cutOff.add(member);
  }

  heal(member: number): void {
    this.#cutOff.delete(member);
  }

  #deliver(from: number, to: number, message: PeerMessage): void {
    const receiver = this.#processes[to];
    if (!receiver) return;
    const arrive = () => {
      if (receiver.member.isStopped || this.#cutOff.has(from) !== this.#cutOff.has(to)) return;
      receiver.member.receive(from, message);
    };
    const latencyMs = MIN_LATENCY_MS + Math.random() * (MAX_LATENCY_MS - MIN_LATENCY_MS);
    receiver.host.run(() => setTimeout(arrive, latencyMs));
  }
}
