import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { serveClusterMetrics } from './metrics.ts';
import type { Running } from './run-until-stopped.ts';
import type { Address } from './settings.ts';

/** How long a process that ends as soon as it has begun is not begun again; milliseconds. At first, and at most. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 30_000;

/** From how long a life on a process has not ended as soon as it has begun; milliseconds. */
const LONG_LIFE_MS = 60_000;

/** How often it is told that a process does not serve yet: a large database may take minutes; milliseconds. */
const TOLD_EVERY_MS = 30_000;

/** How much longer than its processes this one waits for their end; milliseconds. */
const STOP_MARGIN_MS = 1000;

/** Whether this process is to begin others that serve, and see to them, rather than serve itself. */
export const isSupervisor = (count: number): boolean => cluster.isPrimary && count > 1;

/** What is to be run, and how. */
export interface Processes {
  readonly count: number;
  /** Where the metrics of all of them are told together; undefined: nowhere. */
  readonly metricsAddress: Address | undefined;
  readonly drainMs: number;
  readonly log: Logger;
}

/**
 * Runs this program several times on one port, from which each takes connections as it has time. One that ends is replaced; SIGHUP replaces
 * all, one after the other, each once its successor serves.
 *
 * @throws Error when one of them cannot be started
 */
export async function startProcesses(processes: Processes): Promise<Running> {
  const { count, drainMs, log } = processes;
  // Each takes connections from the port itself: one that is handed on to a process which dies in that moment would stand for ever.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const supervisor = new Supervisor(log);
  const metricsServer = await serveClusterMetrics(processes.metricsAddress, log);
  try {
    const [url = ''] = await Promise.all(Array.from({ length: count }, () => supervisor.begin()));
    log.info({ count }, 'processes serve on one port');
    process.on('SIGHUP', () => void supervisor.replaceAll());
    return {
      url,
      metricsUrl: metricsServer?.url,
      drainMs: drainMs + STOP_MARGIN_MS,
      leavePort() {},
      async stop() {
        await supervisor.stop();
        await metricsServer?.close();
      },
    };
  } catch (error) {
    // What is wrong is said: what comes of that is not.
    await supervisor.stop().catch(() => {});
    await metricsServer?.close();
    throw error;
  }
}

/** Begins processes, and sees to it that as many go on. */
class Supervisor {
  readonly #log: Logger;
  readonly #workers = new Set<Worker>();
  readonly #ended = new AbortController();
  #shortLives = 0;
  #replacing = Promise.resolve();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Begins one. @returns where it listens @throws Error when it ends before that */
  async begin(): Promise<string> {
    const worker = cluster.fork();
    this.#workers.add(worker);
    const began = performance.now();
    const serves = Promise.withResolvers<string>();
    worker.on('message', ({ url }: { readonly url?: string }) => url !== undefined && serves.resolve(url));
    // Of one that cannot be begun at all, or to which nothing can be said any more.
    worker.on('error', (error) => {
      serves.reject(error);
      if (worker.process.pid === undefined) this.#workers.delete(worker);
    });
    worker.once('exit', (code, signal) => {
      serves.reject(new Error(`a process has ended before it served (${signal ?? `status ${code}`})`));
      this.#workers.delete(worker);
    });
    const waiting = setInterval(
      () =>
        this.#log.warn({ pid: worker.process.pid }, 'a process is still being begun: what it waits for is in its log'),
      TOLD_EVERY_MS,
    );
    const url = await serves.promise.finally(() => clearInterval(waiting));
    worker.once('exit', (code, signal) => void this.#replace(worker, { code, signal, began }));
    return url;
  }

  /** Has each of those that are there now succeeded by another. */
  replaceAll(): Promise<void> {
    this.#replacing = this.#replacing.then(async () => {
      for (const worker of [...this.#workers]) {
        if (this.#ended.signal.aborted) return;
        // One that has died meanwhile has its successor.
        if (!this.#workers.has(worker)) continue;
        try {
          await this.begin();
          worker.send({ leavePort: true });
          await end(worker);
        } catch (error) {
          this.#log.error({ err: error }, 'a process cannot be replaced: the former serves on');
          return;
        }
      }
      this.#log.info('all processes are replaced');
    });
    return this.#replacing;
  }

  /** Ends all at once: each serves on until its drain is over. @throws Error when one has not ended in order */
  async stop(): Promise<void> {
    this.#ended.abort();
    const statuses = await Promise.all([...this.#workers].map(end));
    const failed = statuses.filter((status) => status !== 0);
    if (failed.length > 0) throw new Error(`${failed.length} of ${statuses.length} processes have not ended in order`);
  }

  async #replace(worker: Worker, { code, signal, began }: End): Promise<void> {
    if (this.#ended.signal.aborted || ENDING.has(worker)) return;
    this.#shortLives = performance.now() - began < LONG_LIFE_MS ? this.#shortLives + 1 : 0;
    this.#log.error({ pid: worker.process.pid, code, signal }, 'a process has ended: another takes its place');
    for (;;) {
      const pause = this.#shortLives === 0 ? 0 : FIRST_PAUSE_MS * 2 ** Math.min(this.#shortLives, 20);
      try {
        await sleep(Math.min(pause, MAX_PAUSE_MS), undefined, { signal: this.#ended.signal });
        await this.begin();
        return;
      } catch (error) {
        if (this.#ended.signal.aborted) return;
        this.#shortLives += 1;
        this.#log.error({ err: error }, 'a process cannot be begun');
      }
    }
  }
}

interface End {
  readonly code: number | null;
  readonly signal: string | null;
  readonly began: number;
}

/** Those that end because they are told to. */
const ENDING = new WeakSet<Worker>();

/** Has a process end in order. @returns its status, or the signal that ended it */
async function end(worker: Worker): Promise<number | string> {
  if (worker.isDead()) return 0;
  ENDING.add(worker);
  // Not by `worker.kill`, which cuts its channel first: then it ends at once.
  const exited = once(worker, 'exit');
  worker.process.kill('SIGTERM');
  const [code, signal] = await exited;
  // The signal itself ends only one that is still being begun, and has nothing to put in order.
  return signal === 'SIGTERM' ? 0 : (code ?? signal);
}
