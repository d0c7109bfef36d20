import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  constants,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { Logger } from 'pino';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import { Throttle } from '../../common/throttle.ts';
import type { Caller } from '../domain/caller.ts';

/** The maximum number of unauthenticated connections. One more closes one of them, and keeps no caller out. */
export const MAX_UNAUTHENTICATED_CONNECTIONS = 256;

/** The maximum number of authenticated connections. One more closes one of the caller that has most. */
export const MAX_AUTHENTICATED_CONNECTIONS = 1024;

/** The limits on calls of an unauthenticated connection. A probe has one call in flight, and begins one per second. */
const MAX_CONCURRENT_CALLS = 8;
export const MAX_CALLS_PER_SECOND = 16;

/** How long a connection lasts after a call was refused, and once all its callers have lost their access. */
const AFTER_REFUSAL_MS = 250;
const WITHDRAWN_MS = 5000;

/** The time within which the peer has to close a drained connection without calls; milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

/**
 * The interval between checks of all connections; milliseconds. Each PING_CHECKS-th one sends pings. What is too late is
 * counted in checks and pings: after a suspension of this process, one of them has passed, and not everybody's time.
 */
const CHECK_INTERVAL_MS = 1000;
const PING_CHECKS = 20;
const MAX_MISSED_PINGS = 3;

/** The number of checks without progress after which a response is destroyed, and from which its caller is stalled. */
const MAX_STALLED_CHECKS = 30;
const MIN_STALLED_CHECKS = 10;

/** Larger writes are split into chunks of this size, so that partial progress is visible; bytes. */
const CHUNK_BYTES = 16 * 1024;

/**
 * The maximum of unsent data of all connections; bytes. Callers that read do not cause that much at a time. From a
 * quarter on, new calls of connections with unread responses wait. It is measured again after so many written bytes.
 */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
const BACKPRESSURE_BYTES = MAX_UNSENT_BYTES / 4;
const MEASURE_INTERVAL_BYTES = 2 * 1024 * 1024;

/** The number of waiting calls admitted after a check; the responses to all would pile up before the next one. */
const MAX_ADMITTED = 64;

/** The highest stream id. A GOAWAY with it lets the peer continue all open streams. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** By this fraction the age differs from the maximum, so that connections opened together do not end together. */
const JITTER = 0.1;

const LOG_INTERVAL_MS = 10_000;

/** A request and its response, over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** What the port has to know of a method. */
interface CallTraits {
  /** Whether it is open to unauthenticated callers: probes carry no secrets. */
  readonly isProbe: boolean;
  /** Whether it lasts as long as its connection without doing anything. */
  readonly isWatch: boolean;
  /** Whether its caller may send for any time. */
  readonly isOpenEnded: boolean;
}

type Report = (reason: string) => void;

/** Returns the HTTP/2 stream of a call; undefined for HTTP/1.1. */
const streamOf = (response: Response) => (response as { stream?: ServerHttp2Stream }).stream;

/** A call from its arrival until its response is sent completely. */
class Call {
  /** The stream that buffers the response until it is sent. */
  readonly to: Writable;
  readonly isWatch: boolean;
  /** The number of successive checks in which the peer took nothing of an unsent response. */
  stalledChecks = 0;
  /** The amount written so far, and the amount that the peer had taken at the last check; bytes. */
  #written = 0;
  #taken = 0;
  #isFinished = false;
  readonly #stream: ServerHttp2Stream | undefined;
  readonly #arrivesBy: number;
  readonly #caller: Caller | undefined;

  constructor(response: Response, caller: Caller | undefined, { isWatch, isOpenEnded }: CallTraits) {
    this.#caller = caller;
    this.#stream = streamOf(response);
    this.to = this.#stream ?? (response as ServerResponse);
    this.isWatch = isWatch;
    // What is not read of a request counts as memory of the connection, even once its stream is destroyed.
    this.#stream?.once('finish', () => this.#stream?.removeAllListeners('data').resume());
    this.#arrivesBy = isOpenEnded ? Number.POSITIVE_INFINITY : performance.now() + REQUEST_ARRIVAL_MS;
  }

  /** Measures the response as it is written. @param onWritten called with the number of bytes of each write */
  measure(response: Response, onWritten: (bytes: number) => void): void {
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    response.write = (chunk: Uint8Array, ...rest: unknown[]) => {
      let at = 0;
      for (; at + CHUNK_BYTES < chunk.length; at += CHUNK_BYTES) write(chunk.subarray(at, at + CHUNK_BYTES));
      const isBelowHighWaterMark = write(chunk.subarray(at), ...rest);
      this.#written += chunk.length;
      onWritten(chunk.length);
      return isBelowHighWaterMark;
    };
  }

  /** Ends the call if its peer reads nothing, or does not end its request in time. Of HTTP/1.1, Node bounds that. */
  check(now: number, report: Report): void {
    // Comparing unsent amounts instead would misjudge streams, which write the next message when one is taken.
    const taken = this.#written - this.to.writableLength;
    this.stalledChecks = this.to.writableLength > 0 && taken <= this.#taken ? this.stalledChecks + 1 : 0;
    this.#taken = taken;
    const isStalled = this.stalledChecks > MAX_STALLED_CHECKS;
    const isWithdrawn = this.#caller?.withdrawn.aborted === true && this.stalledChecks > 0;
    if (isStalled) report('response: not read');
    if (isWithdrawn) report('response: its caller lost its access');
    // Not at once: the response's trailers are still being sent. A message that is too large is answered before its end.
    const isLate = this.#stream?.readableEnded === false && (this.#isFinished || now > this.#arrivesBy);
    this.#isFinished = this.#stream?.writableFinished === true;
    if (isStalled || isWithdrawn || isLate) this.to.destroy();
  }
}

/** A connection from its acceptance to its end. */
class Connection {
  /** The TCP socket; with TLS, the one below it. */
  readonly socket: Socket;
  /** Undefined before the HTTP/2 session begins, and for HTTP/1.1. */
  session: ServerHttp2Session | undefined;
  readonly calls = new Set<Call>();
  /** The callers authenticated on it whose access has not been withdrawn. A proxy may send calls of many over one. */
  readonly callers = new Set<Caller>();
  /** When a call last began or ended, by `performance.now()`. */
  lastMs = performance.now();
  /** Whether it has a place: calls may begin on it. Once it has none, it never has one again. */
  isOpen = true;
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
  }

  /** Aborted when no further call should come; open-ended calls then end. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Whether no call is in flight but health watches, which do nothing. */
  get isIdle(): boolean {
    return this.calls.values().every(({ isWatch }) => isWatch);
  }

  /**
   * The data that its peer has not taken; bytes. The socket's queue holds part of the data of pending responses, and all
   * unsent data of completely written ones. Node exposes it nowhere else: HTTP/2 bypasses the buffer of the socket.
   */
  get unsentBytes(): number {
    const { writeQueueSize = 0 } = (this.socket as { _handle?: { writeQueueSize?: number } | null })._handle ?? {};
    return Math.max(
      writeQueueSize,
      this.calls.values().reduce((sum, { to }) => sum + to.writableLength, 0),
    );
  }

  /** Counts a call until its response closes. */
  begin(call: Call, response: { once(event: 'close', listener: () => void): unknown }): void {
    this.lastMs = performance.now();
    this.#since = Math.min(this.#since, this.lastMs);
    this.calls.add(call);
    response.once('close', () => {
      this.lastMs = performance.now();
      this.calls.delete(call);
      // Not before: Node keeps reading from a closed session, see `cutOff`.
      const isDrained = this.isOpen && this.draining.aborted && this.calls.size === 0;
      if (isDrained && this.session) this.close(CLOSE_TIMEOUT_MS);
    });
  }

  /** Counts a call of a probe that has begun, and returns whether the connection is within the limits. */
  mayProbe(): boolean {
    if (this.lastMs - this.#probes.since > 1000) this.#probes = { since: this.lastMs, begun: 0 };
    this.#probes.begun += 1;
    return this.#probes.begun <= MAX_CALLS_PER_SECOND && this.calls.size <= MAX_CONCURRENT_CALLS;
  }

  /**
   * Has the caller open another connection when this one has a multiple of its maximum age. This balances load: without
   * it, a caller stays for its lifetime at the core that its first connection reached.
   */
  endByAge(multiple: 1 | 2): void {
    if (performance.now() >= this.#since + multiple * this.#maxAgeMs) this.#drain();
  }

  /** Checks calls, callers and age. */
  check(report: Report): void {
    const now = performance.now();
    for (const call of this.calls) call.check(now, report);
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

  /**
   * Cuts off the caller: no further call begins, and the connection is destroyed after a time in which pending
   * responses can be sent. A further call can shorten it.
   *
   * It does not close the session: a closed session keeps reading, and Node 26 aborts when streams are then reset.
   */
  cutOff(timeoutMs: number): void {
    this.#destroyAfter(timeoutMs);
    const wasOpen = this.isOpen;
    this.isOpen = false;
    if (!wasOpen || !this.session) return;
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
    if (!this.isOpen || this.draining.aborted) return;
    this.#draining.abort();
    const { session } = this;
    if (!session || session.destroyed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID);
    session.ping(() => {
      if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR);
    });
  }

  /** Bounds the time that a closed session waits for the peer to read, or to close the connection too. */
  #destroyAfter(timeoutMs: number): void {
    setTimeout(() => this.socket.destroy(), timeoutMs).unref();
  }
}

/** Returns the peer's address, which is the same for the TCP socket, the TLS socket on top of it, and the session. */
const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) =>
  `${remoteAddress} ${remotePort}`;

/**
 * The open connections of a server, and the bounds on their number and cost. It decides about each call before anything
 * else sees it, however it would be answered.
 */
export class Connections {
  /** In the order of their acceptance. */
  readonly #byPeer = new Map<string, Connection>();
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #checks = 0;
  /** The unsent data when last measured, and the data written since; bytes. */
  #unsent = 0;
  #written = 0;
  #nextCheck = Promise.withResolvers<void>();
  /** The number of waiting calls admitted since the last check. */
  #admitted = 0;
  /** The streams and connections closed early since the last log line, by the reason. */
  #ended: Record<string, number> = {};
  readonly #logThrottle = new Throttle(LOG_INTERVAL_MS);

  /** @param maxAgeMs the age from which a connection with calls is replaced */
  constructor(server: Http2Server | Http2SecureServer, maxAgeMs: number, log: Logger) {
    this.#log = log;
    // Prepended: the server's own listener starts the protocol.
    server.prependListener('connection', (socket: Socket) => this.#accept(socket, maxAgeMs));
    server.on('session', (session) => {
      const connection = this.#byPeer.get(peerOf(session.socket));
      if (connection) connection.session = session;
    });
    this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS).unref();
  }

  /**
   * Begins a call. A call without a caller ends its connection, unless a probe makes it, or another call on the
   * connection was authenticated: a proxy may send the calls of many over one connection.
   *
   * @returns what is aborted when the connection drains; undefined: the call gets no response
   */
  async begin(
    request: Request,
    response: Response,
    caller: Caller | undefined,
    traits: CallTraits,
  ): Promise<AbortSignal | undefined> {
    const connection = this.#byPeer.get(peerOf(request.socket));
    if (!connection?.isOpen) return discard(response);
    const call = new Call(response, caller, traits);
    connection.begin(call, response);
    if (!(caller ? this.#authenticate(connection, caller) : this.#tolerate(connection, traits))) {
      connection.cutOff(0);
      return discard(response);
    }
    connection.endByAge(1);
    const isEnding = connection.draining.aborted || !connection.isOpen;
    if (isEnding && !streamOf(response)) response.setHeader('connection', 'close');
    if (!traits.isProbe && !(await this.#hasRoom(connection, call))) return undefined;
    call.measure(response, (bytes) => {
      this.#written += bytes;
      if (this.#written >= MEASURE_INTERVAL_BYTES) this.#enforceLimit();
    });
    return connection.draining;
  }

  /** Ends a connection of HTTP/1.1 whose request cannot be read, once its response is sent. */
  refuse(socket: Socket): void {
    this.#report('connection: malformed request');
    this.#byPeer.get(peerOf(socket))?.cutOff(AFTER_REFUSAL_MS);
  }

  /** Closes all connections when their calls have ended, or after a time; milliseconds. */
  close(timeoutMs: number): void {
    for (const connection of this.#byPeer.values()) connection.close(timeoutMs);
    clearInterval(this.#timer);
  }

  #accept(socket: Socket, maxAgeMs: number): void {
    const [peer, connection] = [peerOf(socket), new Connection(socket, maxAgeMs)];
    this.#byPeer.set(peer, connection);
    socket.once('close', () => {
      connection.isOpen = false;
      if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
    });
    const others = this.#open().filter(({ callers }) => callers.size === 0);
    if (others.length <= MAX_UNAUTHENTICATED_CONNECTIONS) return;
    this.#report('connection: too many unauthenticated connections');
    // The oldest without a call in flight, or else the oldest. Of probes, a health watch is a call in flight.
    (others.find(({ calls }) => calls.size === 0) ?? others[0])?.cutOff(0);
  }

  /** Returns the connections that have a place, oldest first. */
  #open(): Connection[] {
    return [...this.#byPeer.values()].filter(({ isOpen }) => isOpen);
  }

  /** Gives a connection a place among those of callers, and returns whether there is one. */
  #authenticate(connection: Connection, caller: Caller): boolean {
    const authenticated = connection.callers.size > 0 ? [] : this.#open().filter(({ callers }) => callers.size > 0);
    if (authenticated.length >= MAX_AUTHENTICATED_CONNECTIONS) {
      this.#report('connection: too many authenticated connections');
      const other = dispensable(authenticated, caller);
      if (!other) return false;
      other.cutOff(0);
    }
    connection.callers.add(caller);
    return true;
  }

  /** Returns whether a call without a caller, on a connection without one, gets a response. */
  #tolerate(connection: Connection, { isProbe }: CallTraits): boolean {
    if (connection.callers.size > 0 || (isProbe && connection.mayProbe())) return true;
    this.#report(isProbe ? 'connection: too many unauthenticated calls' : 'connection: unauthenticated call');
    if (!isProbe) connection.cutOff(AFTER_REFUSAL_MS);
    return !isProbe;
  }

  #check(): void {
    this.#checks += 1;
    for (const connection of this.#byPeer.values()) {
      connection.check(this.#report);
      if (this.#checks % PING_CHECKS === 0) connection.ping(this.#report);
    }
    this.#enforceLimit();
    this.#admitted = 0;
    this.#nextCheck.resolve();
    this.#nextCheck = Promise.withResolvers();
    this.#logEnded();
  }

  /**
   * Waits while much data is unsent in total, and some of it on the call's connection. Resolves to false if its caller
   * disconnected meanwhile.
   */
  async #hasRoom(connection: Connection, { to }: Call): Promise<boolean> {
    const mustWait = () => this.#unsent + this.#written > BACKPRESSURE_BYTES && connection.unsentBytes > 0;
    if (!mustWait()) return true;
    do {
      await this.#nextCheck.promise;
      if (to.destroyed || !connection.isOpen) return false;
    } while (mustWait() || this.#admitted++ >= MAX_ADMITTED);
    return true;
  }

  /**
   * Measures the unsent data. If it exceeds the limit, cuts off connections: the longest stalled first, then those that
   * hold most. Slow readers are neither.
   */
  #enforceLimit(): void {
    this.#written = 0;
    const holders = this.#open().map((connection) => {
      const stalled = Math.max(0, ...connection.calls.values().map(({ stalledChecks }) => stalledChecks));
      return { connection, bytes: connection.unsentBytes, stalled: stalled < MIN_STALLED_CHECKS ? 0 : stalled };
    });
    this.#unsent = holders.reduce((sum, { bytes }) => sum + bytes, 0);
    if (this.#unsent <= MAX_UNSENT_BYTES) return;
    for (const { connection, bytes } of holders.sort((a, b) => b.stalled - a.stalled || b.bytes - a.bytes)) {
      this.#report('connection: too much unread data');
      // Not only its responses: data handed to the socket is held as long as the connection.
      connection.cutOff(0);
      this.#unsent -= bytes;
      // Down to half of the limit, or the next write would exceed it again.
      if (this.#unsent <= MAX_UNSENT_BYTES / 2) return;
    }
  }

  readonly #report: Report = (reason) => {
    this.#ended[reason] = (this.#ended[reason] ?? 0) + 1;
    this.#logEnded();
  };

  /** Logs early closures: the first one immediately, later ones as counts per interval. */
  #logEnded(): void {
    if (Object.keys(this.#ended).length === 0 || !this.#logThrottle.allow()) return;
    this.#log.warn({ ended: this.#ended }, 'closed streams or connections of callers');
    this.#ended = {};
  }
}

/**
 * Returns the connection that makes room for another one of a caller: of the caller that has most, the one idle
 * longest, or the one used least recently if another caller needs it. So no caller can keep another one out.
 */
function dispensable(authenticated: readonly Connection[], newcomer: Caller): Connection | undefined {
  const byCaller = Map.groupBy(authenticated, ({ callers: [caller] }) => caller?.name);
  const [most] = [...byCaller].sort(([, a], [, b]) => b.length - a.length);
  if (!most) return undefined;
  const [name, connections] = most;
  const byUse = connections.sort((a, b) => a.lastMs - b.lastMs);
  return byUse.find(({ isIdle }) => isIdle) ?? (name === newcomer.name ? undefined : byUse[0]);
}

/** Ends a call without a response: its connection is being closed. */
function discard(response: Response): undefined {
  streamOf(response)?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
