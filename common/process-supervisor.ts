import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { serveClusterMetrics } from './metrics.ts';
import type { Running } from './run-until-stopped.ts';
import type { Address } from './settings.ts';

/** The backoff before a process that keeps exiting early is started again: first and maximum; milliseconds. */
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

/** A process that exits sooner than this has exited early; milliseconds. */
const EARLY_EXIT_MS = 60_000;

/** How often a slow start is logged; a large database may take minutes; milliseconds. */
const LOG_INTERVAL_MS = 30_000;

/** How much longer than its workers the supervisor may take to stop; milliseconds. */
const STOP_MARGIN_MS = 1000;

/** Whether this process supervises workers instead of serving itself. */
export const isSupervisor = (count: number): boolean => cluster.isPrimary && count > 1;

export interface Processes {
  readonly count: number;
  /** Where the aggregated metrics are served; undefined: nowhere. */
  readonly metricsAddress: Address | undefined;
  readonly drainMs: number;
  readonly log: Logger;
}

/**
 * Runs this program in several workers that accept connections on one port. A worker that exits is replaced. SIGHUP
 * replaces all workers one by one, each after its successor serves.
 *
 * @throws Error when a worker fails to start
 */
export async function startProcesses(processes: Processes): Promise<Running> {
  const { count, drainMs, log } = processes;
  // Workers accept connections themselves: one passed to a worker that exits at that moment would stay open unserved.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const supervisor = new Supervisor(log);
  const metricsServer = await serveClusterMetrics(processes.metricsAddress, log);
  try {
    const [url = ''] = await Promise.all(Array.from({ length: count }, () => supervisor.start()));
    log.info({ count }, 'processes are serving on one port');
    process.on('SIGHUP', () => void supervisor.replaceAll());
    return {
      url,
      metricsUrl: metricsServer?.url,
      drainMs: drainMs + STOP_MARGIN_MS,
      stopAccepting() {},
      async stop() {
        await supervisor.stop();
        await metricsServer?.close();
      },
    };
  } catch (error) {
    // The first error is the cause; errors while stopping follow from it.
    await supervisor.stop().catch(() => {});
    await metricsServer?.close();
    throw error;
  }
}

/** Starts workers and keeps their number constant. */
class Supervisor {
  readonly #log: Logger;
  readonly #workers = new Set<Worker>();
  readonly #stopping = new AbortController();
  #earlyExits = 0;
  #replacing = Promise.resolve();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Starts a worker. @returns the address it listens on @throws Error when it exits before that */
  async start(): Promise<string> {
    const worker = cluster.fork();
    this.#workers.add(worker);
    const began = performance.now();
    const serves = Promise.withResolvers<string>();
    worker.on('message', ({ url }: { readonly url?: string }) => url !== undefined && serves.resolve(url));
    // The fork failed, or the IPC channel did.
    worker.on('error', (error) => {
      serves.reject(error);
      if (worker.process.pid === undefined) this.#workers.delete(worker);
    });
    worker.once('exit', (code, signal) => {
      serves.reject(new Error(`process exited before it served (${signal ?? `status ${code}`})`));
      this.#workers.delete(worker);
    });
    const waiting = setInterval(
      () => this.#log.warn({ pid: worker.process.pid }, 'process still starting: see its own log lines for the reason'),
      LOG_INTERVAL_MS,
    );
    const url = await serves.promise.finally(() => clearInterval(waiting));
    worker.once('exit', (code, signal) => void this.#replace(worker, { code, signal, began }));
    return url;
  }

  /** Replaces each current worker. */
  replaceAll(): Promise<void> {
    this.#replacing = this.#replacing.then(async () => {
      for (const worker of [...this.#workers]) {
        if (this.#stopping.signal.aborted) return;
        // It has exited meanwhile, and its replacement is on the way.
        if (!this.#workers.has(worker)) continue;
        try {
          await this.start();
          worker.send({ leavePort: true });
          await stop(worker);
        } catch (error) {
          this.#log.error({ err: error }, 'process replacement failed: the old processes keep serving');
          return;
        }
      }
      this.#log.info('all processes replaced');
    });
    return this.#replacing;
  }

  /** Stops all workers concurrently; each drains first. @throws Error when one did not stop cleanly */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const statuses = await Promise.all([...this.#workers].map(stop));
    const failed = statuses.filter((status) => status !== 0);
    if (failed.length > 0) throw new Error(`${failed.length} of ${statuses.length} processes did not stop cleanly`);
  }

  async #replace(worker: Worker, { code, signal, began }: Exit): Promise<void> {
    if (this.#stopping.signal.aborted || STOPPING.has(worker)) return;
    this.#earlyExits = performance.now() - began < EARLY_EXIT_MS ? this.#earlyExits + 1 : 0;
    this.#log.error({ pid: worker.process.pid, code, signal }, 'process exited unexpectedly: starting another');
    for (;;) {
      const backoffMs = this.#earlyExits === 0 ? 0 : MIN_BACKOFF_MS * 2 ** Math.min(this.#earlyExits, 20);
      try {
        await sleep(Math.min(backoffMs, MAX_BACKOFF_MS), undefined, { signal: this.#stopping.signal });
        await this.start();
        return;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#earlyExits += 1;
        this.#log.error({ err: error }, 'process failed to start: trying again');
      }
    }
  }
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly began: number;
}

/** Workers that this process stops. */
const STOPPING = new WeakSet<Worker>();

/** Stops a worker cleanly. @returns its exit status, or the signal that killed it */
async function stop(worker: Worker): Promise<number | string> {
  if (worker.isDead()) return 0;
  STOPPING.add(worker);
  // Not `worker.kill`, which disconnects the IPC channel first: then the worker exits immediately.
  const exited = once(worker, 'exit');
  worker.process.kill('SIGTERM');
  const [code, signal] = await exited;
  // SIGTERM itself kills only a worker that is still starting and has nothing to clean up.
  return signal === 'SIGTERM' ? 0 : (code ?? signal);
}
