import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Logger } from 'pino';
import { REQUEST_LOG_CLOSE_MS } from '../../common/deadlines.ts';
import { MAX_RECORDED_REQUESTS, recordedFields } from '../../common/rules/request-log.ts';
import type { GatewayMetrics, RecordRequest } from '../observation.ts';
import type { CoreClient, RecordedRequest, RequestBatch } from './core-client.ts';
import { isRefusedByCore } from './core-problems.ts';

/** How often requests are sent to the core. A gateway that dies loses the requests collected since; milliseconds. */
const INTERVAL_MS = 500;

/** The maximum number of requests per studio in one interval, a tenth of all. Further ones are only counted. */
const MAX_PER_STUDIO = 50;

/** How long recording pauses after a core refused a batch, as a core of an earlier release does; milliseconds. */
const PAUSE_MS = 60_000;

type Recorded = RecordedRequest & { omittedCount: number };

/** Records answered requests at the core, in batches. No request waits for its record. */
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
    if (performance.now() < this.#pausedUntil) return this.#countUnrecorded('core', 1);
    const { studioId, apiKeyId } = caller;
    const earlier = this.#collected.get(studioId);
    const isFull = this.#count >= MAX_RECORDED_REQUESTS || (earlier && earlier.length >= MAX_PER_STUDIO);
    const last = earlier?.at(-1);
    if (isFull && last) last.omittedCount += 1;
    if (isFull) this.#countUnrecorded('limit', 1);
    if (isFull && (earlier || !this.#makeRoom())) return;
    const { status = 0, outcome, operation, requestId, replayed = false, leadId, durationMs } = finished;
    const leadExists = outcome === 'ok' || outcome === 'integration_lead_already_open';
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
      // Other ids are not recorded: a caller may put anything there that looks like an id.
      ...(leadExists && leadId !== undefined && { leadId: leadId.toLowerCase() }),
      replayed,
      durationMs: Math.round(durationMs),
      omittedCount: 0,
    };
    this.#count += 1;
    if (earlier) earlier.push(request);
    else this.#collected.set(studioId, [request]);
  };

  /** Sends the rest, if the core takes it within REQUEST_LOG_CLOSE_MS. */
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
      this.#countUnrecorded('core', await this.#recordRequests(this.#unsent));
      this.#isRefused = false;
    } catch (error) {
      if (!isRefusedByCore(error)) return;
      this.#countUnrecorded('core', requests.length);
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

  /** Evicts the newest request of the studio with the most requests, and counts it as omitted after the one before. */
  #makeRoom(): boolean {
    // Every studio has only one request, which could not be counted anywhere.
    if (this.#collected.size === MAX_RECORDED_REQUESTS) return false;
    const most = [...this.#collected.values()].reduce((most, list) => (list.length > most.length ? list : most));
    const taken = most.pop();
    const last = most.at(-1);
    if (taken && last) last.omittedCount += 1 + taken.omittedCount;
    this.#count -= 1;
    return true;
  }

  #countUnrecorded(reason: 'limit' | 'core', count: number): void {
    this.#metrics?.requestsUnrecorded(reason, count);
  }
}
