import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { STOP_MS } from './deadlines.ts';
import { printableLines } from './printable.ts';
import { stopRequest } from './stop-request.ts';
import { DAY_MS } from './units.ts';

/** The date of this release, as in CHANGELOG.md. */
const RELEASED = '2026-12-01';

/** A process, named by the prefix of its settings. */
type Part = 'CORE' | 'GATEWAY' | 'RELAY';

export interface Running {
  /** The address that it listens on, without a trailing slash. */
  readonly url: string;
  /** The address of its metrics, if it serves any. */
  readonly metricsUrl?: string | undefined;
  /** How long it still serves, not ready, before it stops; milliseconds. */
  readonly drainMs: number;
  /** Drains, answers every accepted request, then stops. */
  stop(): Promise<void>;
}

/**
 * Starts a process, waits for a stop request or the exit of its parent, and stops it cleanly. The exit status is 0 after a clean stop. It
 * is 1 when the start or the stop failed, with the reason on standard error.
 */
export async function runUntilStopped(part: Part, start: () => Promise<Running>): Promise<void> {
  // Without this, V8 allocates request objects in the old generation, because others from the same place lived long. Whatever a dead one
  // references would survive, and be copied by every minor collection until the next major one.
  setFlagsFromString('--no-allocation-site-pretenuring');
  // The stop request came while modules were loaded.
  if (stopRequest.aborted) process.exit(0);
  // A day of slack: a release may be made east of UTC, and deployed before its date.
  if (Date.now() < Date.parse(RELEASED) - DAY_MS) {
    const now = new Date().toISOString();
    fail(`the clock of this machine says ${now}, but this release is of ${RELEASED}: set the clock, then start again`);
  }
  try {
    const running = await start();
    // Reports the address to a parent with an IPC channel, after the start's log lines are written.
    await setImmediate();
    process.send?.({ url: running.url });
    if (!stopRequest.aborted) await once(stopRequest, 'abort');
    const deadline = setTimeout(
      () => fail(new Error(`not stopped within ${STOP_MS} ms after the drain`)),
      running.drainMs + STOP_MS,
    );
    await running.stop();
    clearTimeout(deadline);
    // Open handles, such as the channel to the parent, must not keep a stopped process alive.
    process.exit(0);
  } catch (error) {
    fail(portFault(error, part) ?? error);
  }
}

function fail(error: unknown): never {
  console.error(printableLines(error instanceof Error ? `${error.name}: ${error.message}` : `${error}`));
  process.exit(1);
}

/** Returns advice about a port or address that the process cannot use; undefined for other errors. */
function portFault(error: unknown, part: Part): string | undefined {
  const { syscall, code, address, port } = Object(error) as Record<'syscall' | 'code' | 'address' | 'port', unknown>;
  const why = {
    EADDRINUSE: 'it is in use already',
    EACCES: 'this process may not use it',
    EADDRNOTAVAIL: 'this machine has no such address',
  }[String(code)];
  if (syscall !== 'listen' || why === undefined) return undefined;
  const isForMetrics = process.env[`${part}_METRICS_ADDRESS`]?.endsWith(`:${port}`);
  const settings = isForMetrics ? `${part}_METRICS_ADDRESS` : `${part}_HOST and ${part}_PORT`;
  const sentence = `cannot listen on port ${port} of ${address}, because ${why} (${code}). Choose another one: ${settings}.`;
  const { CORE_PORT, GATEWAY_PORT, npm_lifecycle_event } = process.env;
  if (code !== 'EADDRINUSE' || isForMetrics || npm_lifecycle_event !== 'start') return sentence;
  // Keeps a port that an earlier such line chose.
  const ports = Object.entries({ CORE_PORT, GATEWAY_PORT, [`${part}_PORT`]: Number(port) + 1 });
  const chosen = ports.filter(([, value]) => value).map(([name, value]) => `${name}=${value}`);
  return `${sentence}\n\n  ${chosen.join(' ')} npm start\n`;
}
