import { setTimeout as sleep } from 'node:timers/promises';
import type { LeadIntakeClient } from '../client.ts';
import type { Connection } from './connection.ts';
import { type DeliveryOptions, deliver, requireOptions } from './delivery.ts';

/** Options of a worker. */
export interface WorkerOptions extends DeliveryOptions {
  /** Ends the loop after the lead in flight. */
  readonly signal: AbortSignal;
  /** The pause between two passes; milliseconds. Default: 5000. */
  readonly pollMs?: number;
  /** Called when a pass fails, for instance when the database is unavailable or a listener throws; the loop continues. Default: `console.error`. */
  readonly onError?: (error: unknown) => void;
}

/** The maximum pause after failed passes; milliseconds. */
const MAX_PAUSE_MS = 60_000;

/** The longest delay of a timer; milliseconds. A longer one fires immediately. */
const MAX_POLL_MS = 2 ** 31 - 1;

/** Makes passes until the signal is aborted. */
export async function run(
  connection: Connection,
  table: string,
  client: LeadIntakeClient,
  { pollMs = 5000, onError = console.error, ...options }: WorkerOptions,
): Promise<void> {
  if (!(pollMs >= 0 && pollMs <= MAX_POLL_MS)) throw new TypeError(`pollMs must be from 0 to ${MAX_POLL_MS}`);
  requireOptions(options);
  const { signal } = options;
  for (let failures = 0; !signal.aborted; ) {
    try {
      await deliver(connection, table, client, options);
      failures = 0;
    } catch (error) {
      failures += 1;
      onError(error);
    }
    const pauseMs = Math.max(pollMs, Math.min(MAX_PAUSE_MS, (2 ** failures - 1) * 1000));
    // An abort only ends the pause early.
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}
