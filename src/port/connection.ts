import type { ServerResponse } from 'node:http';
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import type { Caller } from '../domain/caller.ts';
import type { Response } from '../rpc/request.ts';

/** The maximum number of concurrent calls of a connection: HTTP/2 streams, or pipelined requests of HTTP/1.1. */
export const MAX_CALLS_PER_CONNECTION = 256;

/** The limits on calls of an unauthenticated connection. A probe has one call in flight, and begins one per second. */
const MAX_CONCURRENT_CALLS = 8;
export const MAX_CALLS_PER_SECOND = 16;

/** How long a connection lasts after all its callers lost their access; milliseconds. */
const WITHDRAWN_MS = 5000;

/** The time for the peer to close a drained connection without calls; milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

/** The maximum number of unanswered pings, after which a connection ends, and of checks without progress, after which a response ends. */
const MAX_MISSED_PINGS = 3;
const MAX_STALLED_CHECKS = 30;

/** Larger writes are split into chunks of this size, so that partial progress is visible; bytes. */
const CHUNK_BYTES = 16 * 1024;

/** The highest stream id. A GOAWAY with it lets the peer finish all open streams. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** The maximum age varies by this fraction, so connections opened together do not end together. */
const JITTER = 0.1;

/** The properties of a method that the port needs. */
export interface CallTraits {
  /** Whether unauthenticated callers may call it: probes carry no secrets. */
  readonly isProbe: boolean;
  /** Whether it lasts as long as its connection without doing anything. */
  readonly isWatch: boolean;
  /** Whether its caller may keep sending. */
  readonly isOpenEnded: boolean;
}

export type Report = (reason: string) => void;

/** Returns the HTTP/2 stream of a call; undefined for HTTP/1.1. */
export const findStream = (response: Response) => (response as { stream?: ServerHttp2Stream }).stream;

/** A call from its arrival until its response is sent completely. */
export class AcceptedCall {
  /** The stream that buffers the response until it is sent. */
  readonly to: Writable;
  readonly isWatch: boolean;
  /** The number of successive checks in which the peer took none of the unsent response. */
  stalledChecks = 0;
  /** The bytes written so far, and the bytes that the peer had taken at the last check. */
  #written = 0;
  #taken = 0;
  #isFinished = false;
  readonly #stream: ServerHttp2Stream | undefined;
  readonly #arrivesBy: number;
  readonly #caller: Caller | undefined;

  constructor(response: Response, caller: Caller | undefined, { isWatch, isOpenEnded }: CallTraits) {
    this.#caller = caller;
    this.#stream = findStream(response);
    this.to = this.#stream ?? (response as ServerResponse);
    this.isWatch = isWatch;
    // Unread parts of a request count as memory of the connection, even once its stream is destroyed.
    this.#stream?.once('finish', () => this.#stream?.removeAllListeners('data').resume());
    this.#arrivesBy = isOpenEnded ? Number.POSITIVE_INFINITY : performance.now() + REQUEST_ARRIVAL_MS;
  }

  /** Measures the response as it is written. @param onWritten called with the bytes of each write */
  measure(response: Response, onWritten: (bytes: number) => void): void {
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    response.write = (chunk: Uint8Array, ...rest: unknown[]) => {
      let start = 0;
      for (; start + CHUNK_BYTES < chunk.length; start += CHUNK_BYTES)
        write(chunk.subarray(start, start + CHUNK_BYTES));
      const isBelowHighWaterMark = write(chunk.subarray(start), ...rest);
      this.#written += chunk.length;
      onWritten(chunk.length);
      return isBelowHighWaterMark;
    };
  }

  /** Ends the call if its peer reads nothing, or does not end its request in time. For HTTP/1.1, Node enforces the latter. */
  check(now: number, report: Report): void {
    // Comparing unsent amounts instead would misjudge streams, which write the next message as soon as one is taken.
    const taken = this.#written - this.to.writableLength;
    this.stalledChecks = this.to.writableLength > 0 && taken <= this.#taken ? this.stalledChecks + 1 : 0;
    this.#taken = taken;
    const isStalled = this.stalledChecks > MAX_STALLED_CHECKS;
    const isWithdrawn = this.#caller?.withdrawn.aborted === true && this.stalledChecks > 0;
    if (isStalled) report('response: not read');
    if (isWithdrawn) report('response: its caller lost its access');
    // A message that is too large is answered before it ends. Its call ends one check later, because trailers may still be unsent.
    const isLate = this.#stream?.readableEnded === false && (this.#isFinished || now > this.#arrivesBy);
    this.#isFinished = this.#stream?.writableFinished === true;
    if (isStalled || isWithdrawn || isLate) this.to.destroy();
  }
}

/** A connection from its acceptance to its end. */
export class AcceptedConnection {
  /** The TCP socket; with TLS, the one below it. */
  readonly socket: Socket;
  /** Undefined before the HTTP/2 session begins, and for HTTP/1.1. */
  session: ServerHttp2Session | undefined;
  readonly calls = new Set<AcceptedCall>();
  /** The callers authenticated on it that still have access. A proxy may send many callers' calls over one connection. */
  readonly callers = new Set<Caller>();
  /** When a call last began or ended, by `performance.now()`. */
  lastMs = performance.now();
  /** Whether calls may begin on it. Once closed to calls, it stays so. */
  isOpen = true;
  readonly #draining = new AbortController();
  readonly #maxAgeMs: number;
  /** When its first call began. */
  #since = Number.POSITIVE_INFINITY;
  #missedPings = 0;
  /** The number of probes since a time. */
  #probes = { since: 0, begun: 0 };

  constructor(socket: Socket, maxAgeMs: number) {
    this.socket = socket;
    this.#maxAgeMs = maxAgeMs * (1 - JITTER + 2 * JITTER * Math.random());
  }

  /** Aborts when no further call should come. Open-ended calls then end. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Whether no call is in flight except health watches, which do nothing. */
  get isIdle(): boolean {
    return this.calls.values().every(({ isWatch }) => isWatch);
  }

  /**
   * The data that the peer has not taken; bytes. The socket's queue holds part of the data of pending responses, and all
   * unsent data of completely written ones. Node exposes it nowhere else, because HTTP/2 bypasses the socket's buffer.
   */
  get unsentBytes(): number {
    const { writeQueueSize = 0 } = (this.socket as { _handle?: { writeQueueSize?: number } | null })._handle ?? {};
    return Math.max(
      writeQueueSize,
      this.calls.values().reduce((sum, { to }) => sum + to.writableLength, 0),
    );
  }

  /** Counts a call until its response closes. */
  begin(call: AcceptedCall, response: { once(event: 'close', listener: () => void): unknown }): void {
    this.lastMs = performance.now();
    this.#since = Math.min(this.#since, this.lastMs);
    this.calls.add(call);
    response.once('close', () => {
      this.lastMs = performance.now();
      this.calls.delete(call);
      // Only now, because Node keeps reading from a closed session: see `refuseCalls`.
      const isDrained = this.isOpen && this.draining.aborted && this.calls.size === 0;
      if (isDrained && this.session) this.close(CLOSE_TIMEOUT_MS);
    });
  }

  /** Counts a probe's call, and returns whether the connection is within its limits. */
  admitProbe(): boolean {
    if (this.lastMs - this.#probes.since > 1000) this.#probes = { since: this.lastMs, begun: 0 };
    this.#probes.begun += 1;
    return this.#probes.begun <= MAX_CALLS_PER_SECOND && this.calls.size <= MAX_CONCURRENT_CALLS;
  }

  /**
   * Makes the caller open another connection once this one reaches a multiple of its maximum age. This balances load.
   * Without it, a caller would stay with the core that its first connection reached.
   */
  endByAge(multiple: 1 | 2): void {
    if (performance.now() >= this.#since + multiple * this.#maxAgeMs) this.#drain();
  }

  check(report: Report): void {
    const now = performance.now();
    for (const call of this.calls) call.check(now, report);
    // An idle connection is no load. Others usually end with the next call (Connections.begin). This is for connections
    // without a next call, because the calls in flight are open-ended.
    if (this.calls.size > 0) this.endByAge(2);
    const wasAuthenticated = this.callers.size > 0;
    for (const caller of this.callers) if (caller.withdrawn.aborted) this.callers.delete(caller);
    if (!wasAuthenticated || this.callers.size > 0) return;
    report('connection: its caller lost its access');
    // Drains first, because a call that crosses the GOAWAY may have a new token.
    this.#drain();
    this.#destroyAfter(WITHDRAWN_MS);
  }

  /**
   * Sends a ping, or closes the connection if its peer does not answer pings. Such a peer has disappeared, or reads
   * nothing, so data for it stays in this process's memory.
   */
  ping(report: Report): void {
    const { session } = this;
    if (!session || session.destroyed) return;
    const missed = this.#missedPings++;
    if (missed === 0) {
      session.ping(() => {
        this.#missedPings = 0;
      });
    }
    if (missed < MAX_MISSED_PINGS) return;
    report('connection: pings not answered');
    this.socket.destroy();
  }

  /** Cuts off the caller: starts no further call, and destroys the connection. */
  cutOff(): void {
    this.#destroyAfter(0);
    this.refuseCalls();
  }

  /**
   * Starts no further call, and tells the peer to close the connection. Pending responses are still sent.
   *
   * It does not close the session: a closed session keeps reading, and Node 26 aborts when its streams are reset.
   */
  refuseCalls(): void {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    if (!wasOpen || !this.session) return;
    // Further streams do not reach the server, so they cost almost nothing.
    this.session.removeAllListeners('stream').on('stream', (stream) => stream.on('error', () => {}));
    // NO_ERROR, because clients discard pending responses on any other code.
    if (!this.session.destroyed) this.session.goaway(constants.NGHTTP2_NO_ERROR);
  }

  /** Accepts no further calls, and closes the connection when calls in flight have ended, or after a timeout. */
  close(timeoutMs: number): void {
    this.session?.close();
    this.#destroyAfter(timeoutMs);
  }

  /**
   * Announces the end of this connection to the caller, and continues the calls in flight. HTTP/1.1 announces it in the
   * next response.
   *
   * Sends two GOAWAY frames, because nghttp2 accepts streams that arrive while the first is being sent. The first
   * announces the end. The second, after a ping round trip, names the last stream that was processed. Callers can
   * safely retry later streams.
   */
  #drain(): void {
    if (!this.isOpen || this.draining.aborted) return;
    this.#draining.abort();
    const { session } = this;
    if (!session || session.destroyed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID);
    session.ping(() => {
      if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR);
    });
  }

  /** Limits how long a closed session waits for the peer to read, or to close the connection too. */
  #destroyAfter(timeoutMs: number): void {
    setTimeout(() => this.socket.destroy(), timeoutMs).unref();
  }
}
