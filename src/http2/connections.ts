import {
  constants,
  type Http2Server,
  type Http2ServerRequest,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** The last stream that there can be: who is told of it goes on with all that is begun. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** A connection to the core's port, from the moment it is taken to its end. */
export class CallerConnection {
  /** What the kernel gave; with TLS, what TLS is spoken over. */
  readonly socket: Socket;
  /** Undefined until HTTP/2 is spoken on it. */
  session: ServerHttp2Session | undefined;
  /** Whether nothing more is begun on it. */
  isEnding = false;
  readonly #draining = new AbortController();

  constructor(socket: Socket) {
    this.socket = socket;
  }

  /**
   * How much waits for the kernel to take it; bytes. Node tells that nowhere else: what HTTP/2 sends goes past the socket that
   * it belongs to.
   */
  get queuedBytes(): number {
    return (this.socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
  }

  /** Aborted when its caller is to go over to another connection: calls that last until somebody ends them end then. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /**
   * Has a caller go over to another connection, and goes on with what was begun on this one.
   *
   * Said in two steps, as nghttp2 takes what still comes between the saying and the sending: after the first nothing more is
   * taken, and the second tells from where on nothing was. Callers may make what lies behind that again, unseen as it was.
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
   * Cuts off a caller: nothing more is begun, and after a time in which an answer can still be sent the connection is closed.
   *
   * Not by closing the session, which goes on to read: Node 26 aborts when a caller then opens and resets streams.
   *
   * @param withinMs the time
   */
  end(withinMs: number): void {
    if (this.isEnding) return;
    this.isEnding = true;
    // The server is not told of what comes nevertheless, so that it costs next to nothing.
    this.session?.removeAllListeners('stream').on('stream', (stream) => stream.on('error', () => {}));
    // Without a fault in it: with one, clients let go of the answer that is still to come.
    if (this.session && !this.session.destroyed) this.session.goaway(constants.NGHTTP2_NO_ERROR);
    this.#destroy(withinMs);
  }

  /** Has callers begin nothing more here, and closes the connection when what they have begun is done, or after a time. */
  close(withinMs: number): void {
    this.session?.close();
    this.#destroy(withinMs);
  }

  /** A session that has ended waits without a bound for the other side to close the connection, or to read, as well. */
  #destroy(withinMs: number): void {
    setTimeout(() => this.socket.destroy(), withinMs).unref();
  }
}

/** Who is at the other end of a connection: the same for the kernel's socket and for what is spoken over it. */
const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>) =>
  `${remoteAddress} ${remotePort}`;

/** Every connection of a server. */
export class Connections {
  readonly #byPeer = new Map<string, CallerConnection>();
  #onTaken: (connection: CallerConnection) => void = () => {};
  readonly #bySpeaker = new WeakMap<Socket | ServerHttp2Session, CallerConnection>();

  constructor(app: FastifyInstance) {
    const server = app.server as unknown as Http2Server;
    // Before the server itself, which begins to speak.
    server.prependListener('connection', (socket: Socket) => {
      const [peer, connection] = [peerOf(socket), new CallerConnection(socket)];
      this.#byPeer.set(peer, connection);
      socket.once('close', () => {
        if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
      });
      this.#onTaken(connection);
    });
    server.prependListener('secureConnection', (secure: Socket) => {
      const connection = this.#byPeer.get(peerOf(secure));
      if (connection) this.#bySpeaker.set(secure, connection);
    });
    server.on('session', (session) => {
      const connection = this.#byPeer.get(peerOf(session.socket));
      if (!connection) return;
      connection.session = session;
      this.#bySpeaker.set(session, connection);
    });
  }

  /** Has somebody told of each connection when it is taken. */
  onTaken(listener: (connection: CallerConnection) => void): void {
    this.#onTaken = listener;
  }

  [Symbol.iterator](): Iterator<CallerConnection> {
    return this.#byPeer.values();
  }

  /** The connection that a request comes over; undefined when that is gone. */
  of({ raw }: FastifyRequest): CallerConnection | undefined {
    const { stream } = raw as unknown as Partial<Http2ServerRequest>;
    return this.#bySpeaker.get(stream ? (stream.session as ServerHttp2Session) : raw.socket);
  }
}

/** The stream of a call; undefined in HTTP/1.1. */
export const streamOf = ({ raw }: FastifyReply): ServerHttp2Stream | undefined =>
  (raw as { stream?: ServerHttp2Stream }).stream;
