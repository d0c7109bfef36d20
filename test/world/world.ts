import type { ForgetfulDisk } from '../crash/forgetful-disk.ts';
import type { SmallDisk } from '../support/small-disk.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import type { Certificates } from './certificates.ts';
import type { MachineClock } from './clock.ts';
import type { CommandLine } from './command-line.ts';
import type { Hand } from './hand.ts';
import type { Settings } from './settings.ts';

/** Something that runs, and that can be ended, or stand still. */
export interface Part {
  readonly name: string;
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it after it has ended, at the same address. */
  start(more?: Settings): Promise<void>;
  /** Until it resumes it does nothing. */
  pause(): void;
  resume(): void;
  /** Stops it in order, told once or twice; gives the exit status, or the signal that ended it. Only of a process of the product. */
  terminate?(isToldTwice: boolean): Promise<number | NodeJS.Signals>;
  /** What happens now may well end it. */
  mayEnd?(): void;
  /** What it counts is gone when it ends. */
  readonly losesCounts: boolean;
}

/** A process of the product that runs now. */
export interface ProductProcess {
  readonly name: string;
  readonly pid: number;
}

/** Everything that runs on one machine. */
export interface World {
  /** Where website servers are sent, each of these ways leads to a gateway that serves. */
  readonly urls: readonly string[];
  /** Of each gateway itself. */
  readonly gatewayUrls: readonly string[];
  /** Of each core itself. */
  readonly coreUrls: readonly string[];
  readonly metricsUrls: readonly string[];
  readonly coreToken: string;
  readonly databaseUrl: string;
  /** Those that one of these names end alone. */
  readonly parts: readonly Part[];
  /** What connections go through, by where they lead. */
  readonly ways: Readonly<Record<string, TcpProxy>>;
  readonly commandLine: CommandLine;
  readonly hand: Hand;
  /** Where core and gateways show them to each other. */
  readonly certificates: Certificates | undefined;
  /** Of its machines, where they can be set. */
  readonly clocks: readonly MachineClock[];
  /** Where the database is, when it is a disk of which more than usual can go wrong. */
  readonly disk: WorldDisk | undefined;
  processes(): readonly ProductProcess[];
  /** Everything that processes of the product have printed. */
  outputs(): readonly string[];
  /** What ended by itself. */
  readonly unexpectedEnds: readonly string[];
  stop(): Promise<void>;
}

export type WorldDisk =
  | { readonly kind: 'small'; readonly disk: SmallDisk }
  | { readonly kind: 'forgetful'; readonly disk: ForgetfulDisk };
