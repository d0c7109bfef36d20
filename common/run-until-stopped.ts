import cluster from 'node:cluster';
import { STOP_MS } from './deadlines.ts';
import { disablePretenuring } from './disable-pretenuring.ts';
import { printableLines } from './printable.ts';

/** Something that runs until it is stopped. */
export interface Running {
  /** The address it listens on, without a slash at the end. */
  readonly url: string;
  /** Where it tells its metrics, if it does. */
  readonly metricsUrl?: string | undefined;
  /** For how long it says that it means to stop, and serves on, before it does; milliseconds. */
  readonly drainMs: number;
  /** Takes no more connections from the port, on which others go on, and serves those that it has. */
  leavePort(): void;
  /** Stops in order, after its drain: nothing accepted is cut off. */
  stop(): Promise<void>;
}

/**
 * Runs a process: starts it, waits for SIGTERM, SIGINT or the end of the process that started it, and stops it in order.
 * The exit status is 0 after an orderly stop and 1 when the start or the stop failed, with the reason on standard error.
 *
 * @param start is told when it is to stop before it has started; it may break off then, with the signal's reason
 */
export async function runUntilStopped(start: (stopping: AbortSignal) => Promise<Running>): Promise<void> {
  disablePretenuring();
  const stopping = new AbortController();
  const stopped = stopRequest().then(() => stopping.abort());
  try {
    const running = await start(stopping.signal);
    // A process that was started by another with a channel tells it where it listens.
    process.send?.({ url: running.url });
    process.on('message', (message) => {
      if (Object(message).leavePort === true) running.leavePort();
    });
    await stopped;
    const deadline = setTimeout(
      () => fail(new Error(`not stopped within ${STOP_MS} ms after the drain`)),
      running.drainMs + STOP_MS,
    );
    await running.stop();
    clearTimeout(deadline);
    // Nothing may keep a stopped process alive, such as the channel to its parent.
    process.exit(0);
  } catch (error) {
    if (stopping.signal.aborted && error === stopping.signal.reason) process.exit(0);
    fail(error);
  }
}

/**
 * The first request to stop. Its handlers stay, so a second signal does not fall back to killing the process and cut
 * the orderly stop short.
 */
function stopRequest(): Promise<void> {
  return new Promise((resolve) => {
    process.on('SIGTERM', () => resolve());
    // Ctrl-C reaches all processes of a terminal: those that another sees to wait for what that says.
    process.on('SIGINT', () => cluster.isWorker || resolve());
    process.on('disconnect', () => resolve());
    // Who sees to several processes has them replaced; one alone stops in order rather than at once.
    process.on('SIGHUP', () => cluster.isWorker || Object.keys(cluster.workers ?? {}).length > 0 || resolve());
  });
}

function fail(error: unknown): never {
  console.error(printableLines(error instanceof Error ? `${error.name}: ${error.message}` : String(error)));
  process.exit(1);
}
