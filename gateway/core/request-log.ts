import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Logger } from 'pino';
import { REQUEST_LOG_CLOSE_MS } from '../../common/deadlines.ts';
import { MAX_RECORDED_REQUESTS, recordedFields } from '../../common/rules/request-log.ts';
import type { GatewayMetrics, RecordRequest } from '../observation.ts';
import type { CoreClient, RecordedRequest, RequestBatch } from './core-client.ts';
import { isRefusedByCore } from './core-problems.ts';

/** How often requests are sent to the core, so how long a record exists only here; milliseconds. */
const INTERVAL_MS = 500;

/** The maximum number of requests per studio in that time, a tenth of all. Further ones are only counted. */
const MAX_PER_STUDIO = 50;

/** How long recording pauses after a core refused it, as a core of an earlier release does; milliseconds. */
const PAUSE_MS = 60_000;

type Recorded = RecordedRequest & { omittedCount: number };

/** Records answered requests at the core, in batches. No request waits for that. */
export class RequestLog {
  readonly #recordRequests: CoreClient['recordRequests'];
  readonly #log: Logger;
  readonly #metrics: GatewayMetrics | undefined;
  readonly #timer: NodeJS.Timeout;
  #collected = new Map<string, Recorded[]>();
  #count = 0;
  /** A batch with an unknown outcome, which is sent again unchanged. */
  #unsent: RequestBatch | undefined;
  #sending: Promise<void> | undefined;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #isRefused = false;

  constructor(recordRequests: CoreClient['recordRequests'], log: Logger, metrics: GatewayMetrics | undefined) {
    this.#recordRequests = recordRequests;
    this.#log = log;
    this.#metrics = metrics;
    this.#timer = setInterval(() => this.#sendSome(), INTERVAL_MS).unref();
  }

  readonly record: RecordRequest = (finished, { caller, secretHint }, faults) => {
    if (performance.now() < this.#pausedUntil) return this.#lost('core', 1);
    const { studioId, apiKeyId } = caller;
    const own = this.#collected.get(studioId);
    const isFull = this.#count >= MAX_RECORDED_REQUESTS || (own && own.length >= MAX_PER_STUDIO);
    const last = own?.at(-1);
    if (isFull && last) last.omittedCount += 1;
    if (isFull) this.#lost('limit', 1);
    if (isFull && (own || !this.#makeRoom())) return;
    const { status = 0, outcome, operation, requestId, replayed = false, leadId, durationMs } = finished;
    const isOfLead = outcome === 'ok' || outcome === 'integration_lead_already_open';
    const request = {
      studioId,
      time: timestampFromMs(Math.round(Date.now() - durationMs)),
      operation,
      apiKeyId,
      secretHint,
      status,
      code: outcome === 'ok' || outcome === 'not_answered' ? '' : outcome,
      faultyFields: recordedFields(faults.map(({ field }) => field)),
      requestId,
      // Only the id of an existing lead is recorded. Other ids may be anything that looks like one.
      ...(isOfLead && leadId !== undefined && { leadId: leadId.toLowerCase() }),
      replayed,
      durationMs: Math.round(durationMs),
      omittedCount: 0,
    };
    this.#count += 1;
    if (own) own.push(request);
    else this.#collected.set(studioId, [request]);
  };

  /** Sends the rest, if the core takes it at once. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const sendRest = async () => {
      await this.#sending;
      // First the batch to retry, then the requests collected since.
      for (const _ of [1, 2]) await this.#send();
    };
    await Promise.race([sendRest(), sleep(REQUEST_LOG_CLOSE_MS, undefined, { ref: false })]);
  }

  #sendSome(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  async #send(): Promise<void> {
    this.#unsent ??= this.#take();
    if (!this.#unsent) return;
    const { requests } = this.#unsent;
    try {
      this.#lost('core', await this.#recordRequests(this.#unsent));
      this.#isRefused = false;
    } catch (error) {
      if (!isRefusedByCore(error)) return;
      this.#lost('core', requests.length);
      this.#pausedUntil = performance.now() + PAUSE_MS;
      if (!this.#isRefused) this.#log.warn({ err: error }, 'requests are not recorded: the core refuses them');
      this.#isRefused = true;
    }
    this.#unsent = undefined;
  }

  #take(): RequestBatch | undefined {
    if (this.#count === 0) return undefined;
    const requests = [...this.#collected.values()].flat();
    this.#collected = new Map();
    this.#count = 0;
    return { batchId: randomUUID(), requests };
  }

  /** Evicts the newest request of the studio with the most. Its list can record that; a studio without requests could not. */
  #makeRoom(): boolean {
    // Every studio has only one.
    if (this.#collected.size === MAX_RECORDED_REQUESTS) return false;
    const most = [...this.#collected.values()].reduce((most, each) => (each.length > most.length ? each : most));
    const taken = most.pop();
    const last = most.at(-1);
    if (taken && last) last.omittedCount += 1 + taken.omittedCount;
    this.#count -= 1;
    return true;
  }

  #lost(reason: 'limit' | 'core', count: number): void {
    this.#metrics?.requestsUnrecorded(reason, count);
  }
}
