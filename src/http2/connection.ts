import { constants, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Caller } from '../domain/caller.ts';
import type { CallInFlight } from './call-in-flight.ts';
import type { ReportClosure } from './closure-log.ts';

/** The limits on calls of an unauthenticated connection. A probe has one call in flight, and begins one per second. */
export const MAX_CONCURRENT_CALLS = 8;
export const MAX_CALLS_PER_SECOND = 16;

/** After this many pings without an answer a connection is closed. Not a time: this process may have been suspended. */
export const MAX_MISSED_PINGS = 3;

/** The highest stream id. A GOAWAY with it lets the peer continue all open streams. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** By this fraction the age differs from the maximum, so that connections opened together do not end together. */
const JITTER = 0.1;

/** The time within which the peer has to close a drained connection without calls; milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

/** How long a connection lasts whose callers have all lost their access; milliseconds. */
const WITHDRAWN_MS = 5000;

/** The states of a connection, in their order. */
export const STATES = ['accepted', 'authenticated', 'draining', 'cutOff', 'closed'] as const;
export type State = (typeof STATES)[number];

/** What happens to a connection. */
export type Happening = 'authenticate' | 'drain' | 'cutOff' | 'close';

/** The state after each happening in each state. */
export const NEXT: Readonly<Record<State, Readonly<Record<Happening, State>>>> = {
  accepted: { authenticate: 'authenticated', drain: 'draining', cutOff: 'cutOff', close: 'closed' },
  authenticated: { authenticate: 'authenticated', drain: 'draining', cutOff: 'cutOff', close: 'closed' },
  draining: { authenticate: 'draining', drain: 'draining', cutOff: 'cutOff', close: 'closed' },
  cutOff: { authenticate: 'cutOff', drain: 'cutOff', cutOff: 'cutOff', close: 'closed' },
  closed: { authenticate: 'closed', drain: 'closed', cutOff: 'closed', close: 'closed' },
};

/** A connection to the core's port, from its acceptance to its end. */
export class CallerConnection {
  /** The TCP socket; with TLS, the one below it. */
  readonly socket: Socket;
  /** Undefined before the HTTP/2 session begins, and for HTTP/1.1. */
  session: ServerHttp2Session | undefined;
  readonly calls = new Set<CallInFlight>();
  /** The callers authenticated on it whose access has not been withdrawn. A proxy may send calls of many over one. */
  readonly callers = new Set<Caller>();
  /** When a call last began or ended, by `performance.now()`. */
  lastMs = performance.now();
  #state: State = 'accepted';
  readonly #draining = new AbortController();
  readonly #maxAgeMs: number;
  /** When its first call began. */
  #since = Number.POSITIVE_INFINITY;
  #missedPings = 0;
  /** The probes begun since a time. */
  #probes = { since: 0, begun: 0 };

  constructor(socket: Socket, maxAgeMs: number) {
    this.socket = socket;
    this.#maxAgeMs = maxAgeMs * (1 - JITTER + 2 * JITTER * Math.random());
    socket.once('close', () => this.#pass('close'));
  }

  get state(): State {
    return this.#state;
  }

  /** Whether it has a place in the table: calls may begin on it. */
  get isOpen(): boolean {
    return STATES.indexOf(this.#state) < STATES.indexOf('cutOff');
  }

  /** Whether no further call should come. */
  get isEnding(): boolean {
    return STATES.indexOf(this.#state) >= STATES.indexOf('draining');
  }

  /** Whether no call is in flight but health watches, which do nothing. */
  get isIdle(): boolean {
    return this.calls.values().every(({ isWatch }) => isWatch);
  }

  /**
   * The amount of data that the kernel has not accepted yet; bytes. Node exposes it nowhere else: HTTP/2 writes bypass
   * the buffer of the socket.
   */
  get #queuedBytes(): number {
    return (this.socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
  }

  /**
   * The data that its peer has not taken; bytes. The socket's queue holds part of the data of pending responses, and all
   * unsent data of completely written ones.
   */
  get unsentBytes(): number {
    return Math.max(
      this.#queuedBytes,
      this.calls.values().reduce((sum, { unsentBytes }) => sum + unsentBytes, 0),
    );
  }

  /** The largest number of checks for which its peer has taken nothing of an unsent response. */
  get stalledChecks(): number {
    return this.calls.values().reduce((most, { stalledChecks }) => Math.max(most, stalledChecks), 0);
  }

  /** Aborted when the connection is drained; open-ended calls then end. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Counts a call until its response closes. */
  begin(call: CallInFlight, response: { once(event: 'close', listener: () => void): unknown }): void {
    this.lastMs = performance.now();
    this.#since = Math.min(this.#since, this.lastMs);
    this.calls.add(call);
    response.once('close', () => {
      this.lastMs = performance.now();
      this.calls.delete(call);
      // Not before: Node keeps reading from a closed session, see `cutOff`.
      if (this.#state === 'draining' && this.session && this.calls.size === 0) this.close(CLOSE_TIMEOUT_MS);
    });
  }

  /** Counts a call of a probe that has begun, and returns whether the connection is within the limits. */
  mayProbe(): boolean {
    if (this.lastMs - this.#probes.since > 1000) this.#probes = { since: this.lastMs, begun: 0 };
    this.#probes.begun += 1;
    return this.#probes.begun <= MAX_CALLS_PER_SECOND && this.calls.size <= MAX_CONCURRENT_CALLS;
  }

  authenticate(caller: Caller): void {
    this.callers.add(caller);
    this.#pass('authenticate');
  }

  /**
   * Has the caller open another connection when this one has a multiple of its maximum age. This balances load: without
   * it, a caller stays for its lifetime at the core that its first connection reached.
   */
  endByAge(multiple: 1 | 2): void {
    if (performance.now() >= this.#since + multiple * this.#maxAgeMs) this.#drain();
  }

  /** Checks calls, callers and age. */
  check(report: ReportClosure): void {
    const now = performance.now();
    for (const call of this.calls) {
      const isStalled = call.isStalled();
      if (isStalled) report('response: not read');
      if (call.isWithdrawn) report('response: its caller lost its access');
      if (isStalled || call.isWithdrawn || call.isUnfinished(now)) call.to.destroy();
    }
    // A connection without calls is no load, and a caller that makes one call at a time never loses one. If no further
    // call comes, those in flight may be open-ended.
    if (this.calls.size > 0) this.endByAge(2);
    const wasAuthenticated = this.callers.size > 0;
    for (const caller of this.callers) if (caller.withdrawn.aborted) this.callers.delete(caller);
    if (!wasAuthenticated || this.callers.size > 0) return;
    report('connection: its caller lost its access');
    // Not `cutOff`: what crosses the GOAWAY may be a call with a new token.
    this.#drain();
    this.#destroyAfter(WITHDRAWN_MS);
  }

  /**
   * Closes the connection if its peer does not answer pings: it has disappeared without closing the connection, or it
   * reads nothing, so that sent data stays in this process's memory. Otherwise, sends another.
   */
  ping(report: ReportClosure): void {
    const { session } = this;
    if (!session || session.destroyed) return;
    const missed = this.#missedPings;
    this.#missedPings += 1;
    if (missed === 0) {
      session.ping(() => {
        this.#missedPings = 0;
      });
    }
    if (missed < MAX_MISSED_PINGS) return;
    report('connection: pings not answered');
    this.socket.destroy();
  }

  /**
   * Cuts off the caller: no further call begins, and the connection is destroyed after a time in which pending
   * responses can be sent.
   *
   * It does not close the session: a closed session keeps reading, and Node 26 aborts when streams are then reset.
   *
   * @param timeoutMs the time. A further call can shorten it
   */
  cutOff(timeoutMs: number): void {
    this.#destroyAfter(timeoutMs);
    if (!this.#pass('cutOff') || !this.session) return;
    // Further streams do not reach the server, so they cost almost nothing.
    this.session.removeAllListeners('stream').on('stream', (stream) => stream.on('error', () => {}));
    // NO_ERROR, because clients discard pending responses on any other code.
    if (!this.session.destroyed) this.session.goaway(constants.NGHTTP2_NO_ERROR);
  }

  /** Accepts no further calls, and closes the connection when those in flight have ended, or after a time. */
  close(timeoutMs: number): void {
    this.session?.close();
    this.#destroyAfter(timeoutMs);
  }

  /**
   * Announces the end of this connection to the caller, and continues the calls in flight on it. HTTP/1.1 announces it
   * in the next response.
   *
   * Sends two GOAWAY frames, because nghttp2 accepts streams that arrive while the first is being sent. The first
   * announces the end; the second, after a ping round trip, names the last stream that was processed. Callers can
   * safely retry later streams.
   */
  #drain(): void {
    if (!this.#pass('drain')) return;
    this.#draining.abort();
    const { session } = this;
    if (!session || session.destroyed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID);
    session.ping(() => {
      if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR);
    });
  }

  /** Passes to the next state, and returns whether it is another one. */
  #pass(happening: Happening): boolean {
    const before = this.#state;
    this.#state = NEXT[before][happening];
    return this.#state !== before;
  }

  /** Bounds the time that a closed session waits for the peer to read, or to close the connection too. */
  #destroyAfter(timeoutMs: number): void {
    setTimeout(() => this.socket.destroy(), timeoutMs).unref();
  }
}
