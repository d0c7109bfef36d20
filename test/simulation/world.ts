import type { TcpProxy } from '../tools/tcp-proxy.ts';
import type { CommandLine } from './command-line.ts';
import type { Count } from './redis/redis-deployment.ts';
import type { Settings } from './settings.ts';

/** A process, or something else that can be killed, paused and restarted. */
export interface Part {
  readonly name: string;
  /** Ends it at once, like a crash. */
  kill(): Promise<void>;
  /** Restarts it after it has ended, at the same address. */
  start(more?: Settings): Promise<void>;
  /** Suspends it until `resume`. */
  pause(): void;
  resume(): void;
  /** Stops it gracefully. Only processes of the product have it. */
  terminate?(): Promise<void>;
  /** Whether the counters of the quota are lost when it ends. */
  readonly losesCounts: boolean;
}

/** The wall clock of a machine. */
export interface SettableClock {
  readonly name: string;
  /** Sets it ahead of the correct time. */
  set(aheadSeconds: number): void;
}

/** All parts of a deployment. */
export interface World {
  /** The public URLs for website servers; each leads to a gateway that serves. */
  readonly urls: readonly string[];
  /** The direct URL of each gateway. */
  readonly gatewayUrls: readonly string[];
  /** The direct URL of each core. */
  readonly coreUrls: readonly string[];
  readonly coreToken: string;
  readonly databaseUrl: string;
  /** The paths of files that processes read again when they change. */
  readonly files: { readonly callers: string; readonly gatewayToken: string };
  /** The parts that can fail independently. */
  readonly parts: readonly Part[];
  /** The TCP proxies between the parts, by destination. */
  readonly links: Readonly<Record<string, TcpProxy>>;
  readonly commandLine: CommandLine;
  /** Runs code like a process that can be killed. */
  begin(name: string, code: () => Promise<void>): { kill(): void };
  /** Every counted request in order; undefined if unknown. */
  readonly counts?: readonly Count[];
  /** The clocks of its machines. */
  readonly clocks: readonly SettableClock[];
  /** All output of the processes of the product. */
  outputs(): readonly string[];
  /** Descriptions of processes that ended unexpectedly. */
  readonly unexpectedEnds: readonly string[];
  stop(): Promise<void>;
}
