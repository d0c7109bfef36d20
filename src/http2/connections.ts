import {
  constants,
  type Http2Server,
  type Http2ServerRequest,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** The highest stream id. A GOAWAY with it lets the peer continue all open streams. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** A connection to the core's port, from its acceptance to its end. */
export class CallerConnection {
  /** The TCP socket; with TLS, the one below it. */
  readonly socket: Socket;
  /** Undefined before the HTTP/2 session begins, and for HTTP/1.1. */
  session: ServerHttp2Session | undefined;
  /** Whether the connection was cut off: no further call begins on it. */
  isCutOff = false;
  readonly #draining = new AbortController();

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /**
   * The amount of data that the kernel has not accepted yet; bytes. Node exposes it nowhere else: HTTP/2 writes bypass
   * the buffer of the socket.
   */
  get queuedBytes(): number {
    return (this.socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
  }

  /** Aborted when the connection is drained; open-ended calls then end. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /**
   * Announces the end of this connection to the caller, and continues the calls in flight on it.
   *
   * Sends two GOAWAY frames, because nghttp2 accepts streams that arrive while the first is being sent. The first
   * announces the end; the second, after a ping round trip, names the last stream that was processed. Callers can
   * safely retry later streams.
   */
  drain(): void {
    this.#draining.abort();
    const { session } = this;
    if (!session || session.destroyed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID);
    session.ping(() => {
      if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR);
    });
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
    if (this.isCutOff) return;
    this.isCutOff = true;
    // Further streams do not reach the server, so they cost almost nothing.
    this.session?.removeAllListeners('stream').on('stream', (stream) => stream.on('error', () => {}));
    // NO_ERROR, because clients discard pending responses on any other code.
    if (this.session && !this.session.destroyed) this.session.goaway(constants.NGHTTP2_NO_ERROR);
  }

  /** Accepts no further calls, and closes the connection when those in flight have ended, or after a time. */
  close(timeoutMs: number): void {
    this.session?.close();
    this.#destroyAfter(timeoutMs);
  }

  /** Bounds the time that a closed session waits for the peer to read, or to close the connection too. */
  #destroyAfter(timeoutMs: number): void {
    setTimeout(() => this.socket.destroy(), timeoutMs).unref();
  }
}

/** Returns the peer's address, which is the same for the TCP socket and the TLS socket on top of it. */
const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) =>
  `${remoteAddress} ${remotePort}`;

/** The open connections of a server. */
export class Connections {
  readonly #byPeer = new Map<string, CallerConnection>();
  #onAccepted: (connection: CallerConnection) => void = () => {};
  /** By HTTP/2 session, or by TLS socket for HTTP/1.1. */
  readonly #byTransport = new WeakMap<Socket | ServerHttp2Session, CallerConnection>();

  constructor(app: FastifyInstance) {
    const server = app.server as unknown as Http2Server;
    // Prepended: the server's own listener starts the protocol.
    server.prependListener('connection', (socket: Socket) => {
      const [peer, connection] = [peerOf(socket), new CallerConnection(socket)];
      this.#byPeer.set(peer, connection);
      socket.once('close', () => {
        if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
      });
      this.#onAccepted(connection);
    });
    server.prependListener('secureConnection', (secure: Socket) => {
      const connection = this.#byPeer.get(peerOf(secure));
      if (connection) this.#byTransport.set(secure, connection);
    });
    server.on('session', (session) => {
      const connection = this.#byPeer.get(peerOf(session.socket));
      if (!connection) return;
      connection.session = session;
      this.#byTransport.set(session, connection);
    });
  }

  /** Sets the function that is called for each new connection. */
  onAccepted(listener: (connection: CallerConnection) => void): void {
    this.#onAccepted = listener;
  }

  [Symbol.iterator](): Iterator<CallerConnection> {
    return this.#byPeer.values();
  }

  /** Returns the connection of a request; undefined if it has closed. */
  of({ raw }: FastifyRequest): CallerConnection | undefined {
    const { stream } = raw as unknown as Partial<Http2ServerRequest>;
    return this.#byTransport.get(stream ? (stream.session as ServerHttp2Session) : raw.socket);
  }
}

/** Returns the HTTP/2 stream of a call; undefined for HTTP/1.1. */
export const streamOf = ({ raw }: FastifyReply): ServerHttp2Stream | undefined =>
  (raw as { stream?: ServerHttp2Stream }).stream;
