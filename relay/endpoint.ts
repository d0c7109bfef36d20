import type { Agent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { RELAY_AFTER_STOP_MS } from '../common/deadlines.ts';
import { errorSummary } from '../common/error-summary.ts';
import { Throttle } from '../common/throttle.ts';
import { type Core, type FeedChange, formatLeadState, isRefused } from './core.ts';
import type { EndpointState } from './endpoint-health.ts';
import { type EndpointSettings, isSame } from './endpoints-file.ts';
import { createMessage, isWanted, signHeaders } from './message.ts';
import type { RelayMetrics } from './observation.ts';
import { formatChangeKey, Schedule } from './schedule.ts';
import { DELIVERED, type Network, newConnections, type Outcome, send } from './send.ts';

/** The pause after a failed call to the core; milliseconds. */
const CORE_PAUSE_MS = 1000;

/** How often a lasting fault of the core is logged; milliseconds. */
const LOG_INTERVAL_MS = 30_000;

interface Parts {
  readonly core: Core;
  readonly log: Logger;
  readonly metrics: RelayMetrics | undefined;
  /** The maximum number of requests in flight to an endpoint. */
  readonly concurrency: number;
  readonly network?: Network | undefined;
}

/**
 * Sends one consumer's changes to its endpoint. It stores nothing: the core resends whatever was not acknowledged, to this process or the
 * next. Changes are acknowledged after the receiver has answered, so they arrive at least once.
 */
export class Endpoint {
  readonly #name: string;
  readonly #parts: Parts;
  readonly #schedule: Schedule<FeedChange>;
  #settings: EndpointSettings;
  #hasFeed = false;
  #probe: NodeJS.Timeout | undefined;
  #connections: Agent;
  /** Handled changes that the next call acknowledges, by lead. Only one acknowledging call is in flight. */
  readonly #handled = new Map<string, FeedChange>();
  #isAcknowledging = false;
  readonly #log: Logger;
  readonly #logThrottle = new Throttle(LOG_INTERVAL_MS);
  readonly #stopping = new AbortController();
  readonly #cutOff = new AbortController();
  readonly #work = new Set<Promise<void>>();

  constructor(name: string, settings: EndpointSettings, parts: Parts) {
    this.#name = name;
    this.#settings = settings;
    this.#parts = parts;
    this.#schedule = new Schedule(parts.concurrency);
    this.#connections = newConnections(parts.concurrency);
    this.#log = parts.log.child({ endpoint: name });
    this.#track(this.#watch());
  }

  get state(): EndpointState {
    return this.#schedule.health.state;
  }

  /** Whether the feed is open: the core sends changes as they occur. */
  get hasFeed(): boolean {
    return this.#hasFeed;
  }

  /** Applies new settings if they differ. Tries the endpoint at once, even while requests with the former settings are in flight. */
  change(settings: EndpointSettings): void {
    if (isSame(settings, this.#settings)) return;
    this.#settings = settings;
    this.#connections = newConnections(this.#parts.concurrency);
    this.#schedule.retry();
    this.#pump();
  }

  /** Starts nothing more. Waits a limited time for requests in flight, and until the core knows their outcomes. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#probe);
    const timer = setTimeout(() => this.#cutOff.abort(), RELAY_AFTER_STOP_MS);
    await Promise.all(this.#work);
    clearTimeout(timer);
    this.#connections.destroy();
  }

  /** Adds to the work that a stop waits for. */
  #track(work: Promise<void>): void {
    this.#work.add(work);
    work.finally(() => this.#work.delete(work));
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Each watch resends every pending change. Any other change was handled, or must no longer be sent, because the database was restored
      // or the caller lost access.
      this.#schedule.forget();
      try {
        for await (const changes of this.#parts.core.watch(this.#name, signal)) {
          this.#hasFeed = true;
          const { true: wanted = [], false: others = [] } = Object.groupBy(
            changes,
            (change) => `${isWanted(change, this.#settings.kinds)}`,
          );
          for (const change of wanted) this.#schedule.offer(change);
          this.#pump();
          // Not awaited: for a caller whose token is revoked it would be retried forever, and the watch must end.
          this.#track(this.#acknowledge(others));
        }
      } catch (error) {
        if (!signal.aborted) this.#coreFailed(error);
      }
      await sleep(CORE_PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Acknowledges handled changes to the core. Changes that arrive during a call go out in the next one. */
  async #acknowledge(changes: readonly FeedChange[]): Promise<void> {
    for (const change of changes) this.#handled.set(formatChangeKey(change), change);
    if (this.#isAcknowledging) return;
    this.#isAcknowledging = true;
    while (this.#handled.size > 0) {
      const batch = [...this.#handled.values()];
      this.#handled.clear();
      await this.#retryCall((core) => core.acknowledge(this.#name, batch));
      for (const change of batch) this.#schedule.finish(change);
      this.#pump();
    }
    this.#isAcknowledging = false;
  }

  /** Retries a call to the core until it succeeds or is refused. After a refusal, the core resends the leads on the next connection. */
  async #retryCall(call: (core: Core) => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      try {
        return await call(this.#parts.core);
      } catch (error) {
        this.#coreFailed(error);
        if (isRefused(error) || signal.aborted) return;
        await sleep(CORE_PAUSE_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  #coreFailed(error: unknown): void {
    this.#hasFeed = false;
    const reason = errorSummary(error);
    if (this.#logThrottle.allow())
      this.#log.warn({ reason }, 'a call of the core failed: check it, the token and the consumer');
  }

  /** Starts as many requests as the endpoint may get now, and sets a timer for its next probe. */
  #pump(): void {
    if (this.#stopping.signal.aborted) return;
    const now = performance.now();
    for (let next = this.#schedule.begin(now); next; next = this.#schedule.begin(now)) this.#track(this.#relay(next));
    clearTimeout(this.#probe);
    const waitMs = this.#schedule.health.nextProbeAt - now;
    if (waitMs > 0) this.#probe = setTimeout(() => this.#pump(), waitMs);
  }

  async #relay(change: FeedChange): Promise<void> {
    const outcome = await this.#send(change);
    // The request was cut off because this process stops, which is not the endpoint's fault.
    if (this.#cutOff.signal.aborted && outcome.code !== DELIVERED) return;
    const before = this.state;
    const failure = this.#schedule.end(change, outcome, performance.now(), Math.random());
    const { state } = this;
    if (state !== before)
      this.#log[state === 'open' ? 'info' : 'warn']({ state, outcome: outcome.code }, `the endpoint is ${state}`);
    this.#pump();
    if (failure && !failure.setAside) return;
    if (!failure) return this.#acknowledge([change]);
    await this.#setAside(change, outcome.code, failure.pauseMs);
    this.#schedule.finish(change);
    this.#pump();
  }

  /** Makes one attempt. Never rejects. */
  async #send(change: FeedChange): Promise<Outcome> {
    const { url, secrets, payload, allowPrivate } = this.#settings;
    const began = performance.now();
    let outcome: Outcome;
    try {
      const message = createMessage(change, payload);
      const headers = signHeaders(message, secrets, new Date());
      const attempt = { url: url.reveal(), headers, body: message.body, allowPrivate, connections: this.#connections };
      outcome = await send(attempt, this.#cutOff.signal, this.#parts.network);
    } catch (err) {
      this.#log.error({ err }, 'a webhook cannot be created: report this bug');
      outcome = { code: 'INTERNAL_ERROR' };
    }
    const durationMs = Math.round(performance.now() - began);
    const { attempts } = change;
    this.#log.info({ ...formatLeadState(change), attempts, outcome: outcome.code, durationMs }, 'webhook sent');
    this.#parts.metrics?.attempted(this.#name, outcome.code, durationMs);
    return outcome;
  }

  async #setAside(change: FeedChange, reason: string, pauseMs: number | undefined): Promise<void> {
    const retryAt = pauseMs === undefined ? undefined : new Date(Date.now() + pauseMs);
    if (!retryAt) this.#log.warn({ ...formatLeadState(change), reason }, 'lead set aside');
    await this.#retryCall((core) => core.setAside(this.#name, change, reason, retryAt));
  }
}
