import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { isHealthPath } from '../rpc/caller-authentication.ts';
import type { ReportClosure } from './closure-log.ts';
import { type CallerConnection, type Connections, streamOf } from './connections.ts';

/** The interval between checks whether callers read their responses; milliseconds. */
const CHECK_INTERVAL_MS = 1000;

/**
 * The number of successive checks without progress after which a response is destroyed. Counted, not timed: after a
 * suspension of this process, one check has passed, and not the time of all callers.
 */
export const MAX_STALLED_CHECKS = 30;

/** The number of checks without progress from which a caller counts as stalled rather than slow. */
const MIN_STALLED_CHECKS = 10;

/** Larger writes are split into chunks of this size, so that partial progress is visible; bytes. */
const CHUNK_BYTES = 16 * 1024;

/** The maximum of unsent data of all connections; bytes. Callers that read do not cause that much at a time. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/** From this much unsent data on, new calls of connections with unread responses wait; bytes. */
const BACKPRESSURE_BYTES = MAX_UNSENT_BYTES / 4;

/** The number of waiting calls admitted after a check; the responses to all would pile up before the next one. */
const MAX_ADMITTED = 64;

/** After this much written data, the amount of unsent data is measured again; bytes. */
const MEASURE_INTERVAL_BYTES = 2 * 1024 * 1024;

/** A response that is not yet sent completely. */
interface UnreadResponse {
  readonly to: Writable;
  readonly connection: CallerConnection | undefined;
  /** The amount written so far, and the amount that the peer had taken at the last check; bytes. */
  written: number;
  taken: number;
  /** The number of successive checks without progress. */
  stalledChecks: number;
}

/** A connection with unsent data. */
interface Holder {
  readonly connection: CallerConnection;
  bytes: number;
  stalledChecks: number;
}

/**
 * Destroys responses that their callers do not read for a time. If all connections together hold too much unsent data,
 * it also cuts off connections: the longest stalled first, then those that hold most. Slow readers are neither. Before
 * that limit is reached, new calls of connections with unread responses wait.
 */
export function endUnreadResponses(app: FastifyInstance, connections: Connections, report: ReportClosure): void {
  const unread = new UnreadResponses(connections, report);
  app.addHook('onRequest', async (request, reply) => {
    const { raw } = reply;
    const connection = connections.of(request);
    if (!isHealthPath(request.url) && !(await unread.admit(connection, raw))) return reply.hijack();
    unread.watch(raw, streamOf(reply) ?? raw, connection);
  });
  const timer = setInterval(() => unread.check(), CHECK_INTERVAL_MS).unref();
  app.addHook('onClose', async () => clearInterval(timer));
}

class UnreadResponses {
  readonly #connections: Connections;
  readonly #report: ReportClosure;
  readonly #responses = new Set<UnreadResponse>();
  /** The unsent data when last measured, and the data written since; bytes. */
  #unsent = 0;
  #written = 0;
  #nextCheck = Promise.withResolvers<void>();
  /** The number of waiting calls admitted since the last check. */
  #admitted = 0;

  constructor(connections: Connections, report: ReportClosure) {
    this.#connections = connections;
    this.#report = report;
  }

  /** Waits until a call may begin. Resolves to false if its caller disconnected meanwhile. */
  async admit(connection: CallerConnection | undefined, response: Writable): Promise<boolean> {
    for (let waited = false; ; waited = true) {
      if (!this.#mustWait(connection) && (!waited || this.#admitted++ < MAX_ADMITTED)) return true;
      await this.#nextCheck.promise;
      if (response.destroyed || connection?.isCutOff) return false;
    }
  }

  /**
   * Watches a response from its beginning to its end.
   *
   * @param raw the response as it is written
   * @param to the stream that buffers it until it is sent
   */
  watch(raw: ServerResponse, to: Writable, connection: CallerConnection | undefined): void {
    const response: UnreadResponse = { to, connection, written: 0, taken: 0, stalledChecks: 0 };
    this.#responses.add(response);
    raw.once('close', () => this.#responses.delete(response));
    const write = raw.write.bind(raw) as (...args: unknown[]) => boolean;
    raw.write = (chunk: Uint8Array, ...rest: unknown[]) => {
      let at = 0;
      for (; at + CHUNK_BYTES < chunk.length; at += CHUNK_BYTES) write(chunk.subarray(at, at + CHUNK_BYTES));
      const isBelowHighWaterMark = write(chunk.subarray(at), ...rest);
      this.#written += chunk.length;
      response.written += chunk.length;
      if (this.#written >= MEASURE_INTERVAL_BYTES) this.#enforceLimit();
      return isBelowHighWaterMark;
    };
  }

  /** Checks the progress of all responses. */
  check(): void {
    for (const response of this.#responses) {
      const { writableLength } = response.to;
      // Comparing unsent amounts instead would misjudge streams, which write the next message when one is taken.
      const taken = response.written - writableLength;
      response.stalledChecks = writableLength > 0 && taken <= response.taken ? response.stalledChecks + 1 : 0;
      response.taken = taken;
      if (response.stalledChecks <= MAX_STALLED_CHECKS) continue;
      this.#report('response: not read');
      response.to.destroy();
    }
    this.#enforceLimit();
    this.#admitted = 0;
    this.#nextCheck.resolve();
    this.#nextCheck = Promise.withResolvers();
  }

  /** Whether a new call has to wait: much data is unsent in total, and some of it on the call's connection. */
  #mustWait(connection: CallerConnection | undefined): boolean {
    return (
      connection !== undefined &&
      this.#unsent + this.#written > BACKPRESSURE_BYTES &&
      (connection.queuedBytes > 0 ||
        this.#responses.values().some((each) => each.connection === connection && each.to.writableLength > 0))
    );
  }

  /** Measures the unsent data, and cuts off connections if it exceeds the limit. */
  #enforceLimit(): void {
    this.#written = 0;
    const holders = this.#holders();
    this.#unsent = holders.reduce((sum, { bytes }) => sum + bytes, 0);
    if (this.#unsent <= MAX_UNSENT_BYTES) return;
    for (const { connection, bytes } of holders.sort(
      (a, b) => b.stalledChecks - a.stalledChecks || b.bytes - a.bytes,
    )) {
      this.#report('connection: too much unread data');
      // Not only its responses: data handed to the socket is held as long as the connection.
      connection.cutOff(0);
      for (const response of this.#responses) {
        if (response.connection === connection) this.#responses.delete(response);
      }
      this.#unsent -= bytes;
      // Down to half of the limit, or the next write would exceed it again.
      if (this.#unsent <= MAX_UNSENT_BYTES / 2) return;
    }
  }

  /** Returns the connections with unsent data. */
  #holders(): Holder[] {
    const holders = new Map<CallerConnection, Holder>();
    for (const connection of this.#connections) {
      if (connection.queuedBytes === 0 || connection.isCutOff) continue;
      holders.set(connection, { connection, bytes: 0, stalledChecks: 0 });
    }
    for (const { to, connection, stalledChecks } of this.#responses) {
      if (!connection || to.writableLength === 0) continue;
      const holder = holders.get(connection) ?? { connection, bytes: 0, stalledChecks: 0 };
      holder.bytes += to.writableLength;
      if (stalledChecks >= MIN_STALLED_CHECKS) holder.stalledChecks = Math.max(holder.stalledChecks, stalledChecks);
      holders.set(connection, holder);
    }
    // The socket's queue holds part of the data of pending responses, and all unsent data of completely written ones.
    for (const holder of holders.values()) holder.bytes = Math.max(holder.bytes, holder.connection.queuedBytes);
    return [...holders.values()];
  }
}
