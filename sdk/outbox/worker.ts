import { setTimeout as sleep } from 'node:timers/promises';
import type { LeadIntakeClient } from '../client.ts';
import type { Connection } from './connection.ts';
import { type DeliveryOptions, deliver } from './delivery.ts';

/** How a worker goes on. */
export interface WorkerOptions extends DeliveryOptions {
  /** Ends the loop when it is aborted, after the lead that is being sent. */
  readonly signal: AbortSignal;
  /** How long to wait between two passes; milliseconds, unless told 5000. */
  readonly pollMs?: number;
  /** Is told of passes that fail: the database is away, a listener throws. The loop goes on. Unless told, it is printed. */
  readonly onError?: (error: unknown) => void;
}

/** The longest that is waited after passes that fail; milliseconds. */
const MAX_PAUSE_MS = 60_000;

/** Makes one pass after the other until it is told to end. */
export async function run(
  connection: Connection,
  table: string,
  client: LeadIntakeClient,
  { pollMs = 5000, onError = console.error, ...options }: WorkerOptions,
): Promise<void> {
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
    // Only its signal ends it early.
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}
