import { constants, type Http2SecureServer, type Http2Server } from 'node:http2';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { Lingering } from '../../common/lingering.ts';
import { Throttle } from '../../common/throttle.ts';
import type { Caller } from '../domain/caller.ts';
import type { Request, Response } from '../rpc/request.ts';
import {
  AcceptedCall,
  AcceptedConnection,
  type CallTraits,
  findStream,
  MAX_CALLS_PER_CONNECTION,
  type Report,
} from './connection.ts';

/** The maximum number of unauthenticated connections. One more closes one of them, and never a caller's. */
export const MAX_UNAUTHENTICATED_CONNECTIONS = 256;

/** The maximum number of connections that linger after their last answer. They no longer count as open. */
export const MAX_LINGERING = 256;

/** The maximum number of authenticated connections. One more closes a connection of the caller with the most. */
export const MAX_AUTHENTICATED_CONNECTIONS = 1024;

/**
 * The interval between checks of all connections; milliseconds. Every PING_CHECKS-th check sends pings. Lateness is
 * counted in checks and pings, so a suspension of this process counts as one of them.
 */
const CHECK_INTERVAL_MS = 1000;
const PING_CHECKS = 20;

/** The number of checks without progress after which a response counts as stalled. */
const MIN_STALLED_CHECKS = 10;

/**
 * The maximum of unsent data of all connections; bytes. Callers that read never cause that much. Above BACKPRESSURE_BYTES,
 * new calls on connections with unread responses wait. Unsent data is measured again after MEASURE_INTERVAL_BYTES.
 */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
export const BACKPRESSURE_BYTES = MAX_UNSENT_BYTES / 4;
const MEASURE_INTERVAL_BYTES = 2 * 1024 * 1024;

/** The number of waiting calls admitted after a check. More responses would pile up before the next check. */
const MAX_ADMITTED = 64;

const LOG_INTERVAL_MS = 10_000;

/** Returns the addresses of both ends, which are equal for the TCP socket, the TLS socket on top of it, and the session. */
const formatPeer = ({ localAddress, remoteAddress, remotePort }: Socket) =>
  `${localAddress} ${remoteAddress} ${remotePort}`;

/**
 * The open connections of a server, with the limits on their number and cost. It decides about each call before
 * anything else sees it.
 */
export class Connections {
  /** In the order of their acceptance. */
  readonly #byPeer = new Map<string, AcceptedConnection>();
  readonly #lingering = new Lingering(MAX_LINGERING);
  readonly #log: Logger;
  #isClosing = false;
  #checks = 0;
  /** The unsent data when last measured, and the data written since; bytes. */
  #unsent = 0;
  #written = 0;
  #nextCheck = Promise.withResolvers<void>();
  /** The number of waiting calls admitted since the last check. */
  #admitted = 0;
  /** The number of streams and connections closed early since the last log line, by reason. */
  #ended: Record<string, number> = {};
  readonly #logThrottle = new Throttle(LOG_INTERVAL_MS);

  /** @param maxAgeMs the age at which a connection with calls is replaced */
  constructor(server: Http2Server | Http2SecureServer, maxAgeMs: number, log: Logger) {
    this.#log = log;
    // Prepended, because the server's own listener starts the protocol.
    server.prependListener('connection', (socket: Socket) => this.#accept(socket, maxAgeMs));
    // HTTP/1.1 over TLS.
    server.on('secureConnection', (socket: Socket) => this.#lingering.watch(socket));
    server.on('session', (session) => {
      const connection = this.#byPeer.get(formatPeer(session.socket));
      if (connection) connection.session = session;
    });
    const timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS).unref();
    // Not before 'close', because calls wait for the next check.
    server.on('close', () => clearInterval(timer));
  }

  /**
   * Begins a call. A call without a caller ends its connection, with two exceptions: it is a probe, or the connection
   * has an authenticated call. A proxy may send many callers' calls over one connection.
   *
   * @returns a signal that aborts when the connection drains; undefined: the call gets no response
   */
  async begin(
    request: Request,
    response: Response,
    caller: Caller | undefined,
    traits: CallTraits,
  ): Promise<AbortSignal | undefined> {
    const connection = this.#byPeer.get(formatPeer(request.socket));
    if (!connection?.isOpen) return discard(response);
    const call = new AcceptedCall(response, caller, traits);
    connection.begin(call, response);
    const isAdmitted = caller ? this.#authenticate(connection, caller) : this.#tolerate(connection, traits);
    if (!isAdmitted || this.#exceedsCalls(connection, response)) {
      connection.cutOff();
      return discard(response);
    }
    connection.endByAge(1);
    const isEnding = connection.draining.aborted || !connection.isOpen;
    if (isEnding && !findStream(response)) response.setHeader('connection', 'close');
    if (!traits.isProbe && !(await this.#hasRoom(connection, call))) return undefined;
    call.measure(response, (bytes) => {
      this.#written += bytes;
      if (this.#written >= MEASURE_INTERVAL_BYTES) this.#enforceLimit();
    });
    return connection.draining;
  }

  /** Ends an HTTP/1.1 connection with an unreadable request, once its response is sent. */
  refuse(socket: Socket): void {
    this.#report('connection: malformed request');
    const connection = this.#byPeer.get(formatPeer(socket));
    if (connection) this.#endAfterAnswer(connection);
  }

  /** Closes all connections when their calls have ended, or after a timeout; milliseconds. */
  close(timeoutMs: number): void {
    this.#isClosing = true;
    for (const connection of this.#byPeer.values()) connection.close(timeoutMs);
  }

  #accept(socket: Socket, maxAgeMs: number): void {
    const [peer, connection] = [formatPeer(socket), new AcceptedConnection(socket, maxAgeMs)];
    // An earlier connection with the same addresses was reset. Node does not notice that while a body is not read.
    this.#byPeer.get(peer)?.cutOff();
    this.#byPeer.set(peer, connection);
    socket.once('close', () => {
      connection.isOpen = false;
      if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
    });
    const others = this.#open().filter(({ callers }) => callers.size === 0);
    if (others.length <= MAX_UNAUTHENTICATED_CONNECTIONS) return;
    this.#report('connection: too many unauthenticated connections');
    // Prefers the oldest without a call in flight. A health watch counts as a call in flight.
    (others.find(({ calls }) => calls.size === 0) ?? others[0])?.cutOff();
  }

  /** Returns the connections on which calls may begin, oldest first. */
  #open(): AcceptedConnection[] {
    return [...this.#byPeer.values()].filter(({ isOpen }) => isOpen);
  }

  /** Counts a connection as a caller's, and returns whether there is room for it. */
  #authenticate(connection: AcceptedConnection, caller: Caller): boolean {
    const authenticated = connection.callers.size > 0 ? [] : this.#open().filter(({ callers }) => callers.size > 0);
    if (authenticated.length >= MAX_AUTHENTICATED_CONNECTIONS) {
      this.#report('connection: too many authenticated connections');
      const other = findDispensable(authenticated, caller);
      if (!other) return false;
      other.cutOff();
    }
    connection.callers.add(caller);
    return true;
  }

  /** Returns whether a call without a caller on an unauthenticated connection gets a response. */
  #tolerate(connection: AcceptedConnection, { isProbe }: CallTraits): boolean {
    if (connection.callers.size > 0 || (isProbe && connection.admitProbe())) return true;
    this.#report(isProbe ? 'connection: too many unauthenticated calls' : 'connection: unauthenticated call');
    if (!isProbe) this.#endAfterAnswer(connection);
    return !isProbe;
  }

  /** Ends a connection once its peer has received the last answer. */
  #endAfterAnswer(connection: AcceptedConnection): void {
    connection.refuseCalls();
    this.#lingering.hold(connection.socket);
  }

  /** Returns whether an HTTP/1.1 connection has too many calls. HTTP/2 itself refuses further streams. */
  #exceedsCalls({ calls }: AcceptedConnection, response: Response): boolean {
    if (findStream(response) || calls.size <= MAX_CALLS_PER_CONNECTION) return false;
    this.#report('connection: too many calls');
    return true;
  }

  #check(): void {
    this.#checks += 1;
    // Closing connections are not checked. They end soon, and Node 26 aborts when streams of a closed session are reset.
    for (const connection of this.#isClosing ? [] : this.#byPeer.values()) {
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
   * Waits while much data is unsent in total, and some of it on the call's connection. Resolves to false if the caller
   * disconnected meanwhile.
   */
  async #hasRoom(connection: AcceptedConnection, { to }: AcceptedCall): Promise<boolean> {
    const mustWait = () => this.#unsent + this.#written > BACKPRESSURE_BYTES && connection.unsentBytes > 0;
    if (!mustWait()) return true;
    do {
      await this.#nextCheck.promise;
      if (to.destroyed || !connection.isOpen) return false;
    } while (mustWait() || this.#admitted++ >= MAX_ADMITTED);
    return true;
  }

  /**
   * Measures the unsent data. Above the limit, cuts off connections: the longest stalled first, then those with the
   * most data. Slow readers are neither.
   */
  #enforceLimit(): void {
    this.#written = 0;
    const holders = [...this.#byPeer.values()].map((connection) => {
      const stalled = Math.max(0, ...connection.calls.values().map(({ stalledChecks }) => stalledChecks));
      return { connection, bytes: connection.unsentBytes, stalled: stalled < MIN_STALLED_CHECKS ? 0 : stalled };
    });
    this.#unsent = holders.reduce((sum, { bytes }) => sum + bytes, 0);
    if (this.#unsent <= MAX_UNSENT_BYTES) return;
    for (const { connection, bytes } of holders.sort((a, b) => b.stalled - a.stalled || b.bytes - a.bytes)) {
      this.#report('connection: too much unread data');
      // Ends the whole connection, because data in its socket is held until it closes.
      connection.cutOff();
      this.#unsent -= bytes;
      // Stops at half of the limit, because otherwise the next write would exceed it again.
      if (this.#unsent <= MAX_UNSENT_BYTES / 2) return;
    }
  }

  readonly #report: Report = (reason) => {
    this.#ended[reason] = (this.#ended[reason] ?? 0) + 1;
    this.#logEnded();
  };

  /** Logs early closures: the first one at once, later ones as counts per interval. */
  #logEnded(): void {
    if (Object.keys(this.#ended).length === 0 || !this.#logThrottle.allow()) return;
    this.#log.warn({ ended: this.#ended }, 'closed streams or connections of callers');
    this.#ended = {};
  }
}

/**
 * Returns the connection to cut off for a caller's new one. It belongs to the caller with the most connections, and has
 * been idle longest. If that caller has no idle one, it loses its least recently used one, unless it is the newcomer
 * itself. No caller can therefore keep another one out.
 */
function findDispensable(all: readonly AcceptedConnection[], newcomer: Caller): AcceptedConnection | undefined {
  const byCaller = Map.groupBy(all, ({ callers: [caller] }) => caller?.name);
  const [most] = [...byCaller].sort(([, a], [, b]) => b.length - a.length);
  if (!most) return undefined;
  const [name, connections] = most;
  const byUse = connections.sort((a, b) => a.lastMs - b.lastMs);
  return byUse.find(({ isIdle }) => isIdle) ?? (name === newcomer.name ? undefined : byUse[0]);
}

/** Ends a call without a response, because its connection is being closed. */
function discard(response: Response): undefined {
  findStream(response)?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
