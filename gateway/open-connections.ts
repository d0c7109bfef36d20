import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';

/** How many connections there are at most; a further one is closed as it comes. */
export const MOST_CONNECTIONS = 10_000;

/**
 * Whoever has an answer waiting takes some of it within so many milliseconds. A byte now and then is nothing: the system asks
 * for more each time that a third of what it keeps for the caller is taken, and that is what can be seen.
 */
export const TAKEN_WITHIN_MS = 30_000;

/**
 * How many bytes may stand unread of the answers to one key, and of all answers to keys. A page of the longest leads has
 * about 1 MB. What is told without a key is short, or the same bytes for everybody.
 */
export const MOST_UNREAD_OF_KEY_BYTES = 8 * 1024 * 1024;
export const MOST_UNREAD_BYTES = 64 * 1024 * 1024;

/** How often connections are looked over: after so many milliseconds, or after answers of so many characters. */
export const LOOK_EVERY_MS = 1000;
export const LOOK_AFTER_CHARACTERS = 4 * 1024 * 1024;

/** How often the log tells of it, at most; milliseconds. */
const TOLD_EVERY_MS = 10_000;

interface Connection {
  readonly socket: Socket;
  /** Its place in the list. */
  index: number;
  /** Whose key the last answer was for. */
  apiKeyId: string | undefined;
  /** Since when it has taken nothing, on the clock of `performance`; undefined: all was taken. */
  unreadSince: number | undefined;
  /** How many bytes it had taken then. */
  takenBytes: number;
}

/**
 * Keeps what callers can make the gateway hold for them within bounds, by closing the connections of those who do not read.
 * Nothing goes by addresses: one address may be the balancer's, and stand for everybody.
 */
export class OpenConnections {
  readonly #server: Server;
  readonly #log: Logger;
  // Not a `Map`, which keeps what it dropped when it lives long and changes much.
  readonly #all: Connection[] = [];
  readonly #bySocket = new WeakMap<Socket, Connection>();
  #sentCharacters = 0;
  #closed = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(server: Server, log: Logger) {
    this.#server = server;
    this.#log = log;
    server.maxConnections = MOST_CONNECTIONS;
    server.on('connection', (socket) => this.#add(socket));
    const timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
    server.on('close', () => clearInterval(timer));
  }

  /** Is told of each answer before it goes out: how long it is, and for whose key, if for any. */
  answers(socket: Socket, characters: number, apiKeyId: string | undefined): void {
    const connection = this.#bySocket.get(socket);
    if (connection) connection.apiKeyId = apiKeyId;
    if (apiKeyId === undefined) return;
    this.#sentCharacters += characters;
    if (this.#sentCharacters >= LOOK_AFTER_CHARACTERS) this.#look();
  }

  #add(socket: Socket): void {
    const connection = {
      socket,
      index: this.#all.length,
      apiKeyId: undefined,
      unreadSince: undefined,
      takenBytes: 0,
    };
    this.#all.push(connection);
    this.#bySocket.set(socket, connection);
    socket.on('close', () => this.#remove(connection));
  }

  /** The last takes its place. */
  #remove({ index }: Connection): void {
    const last = this.#all.pop();
    if (!last || last.index === index) return;
    last.index = index;
    this.#all[index] = last;
  }

  #look(): void {
    this.#sentCharacters = 0;
    const unread = this.#all.filter((connection) => this.#isUnread(connection, performance.now()));
    // Whoever has stood longest goes first.
    const ofKeys = unread.filter(({ apiKeyId }) => apiKeyId !== undefined).sort(byUnreadSince);
    for (const ofKey of Map.groupBy(ofKeys, ({ apiKeyId }) => apiKeyId).values()) {
      this.#closeBeyond(ofKey, MOST_UNREAD_OF_KEY_BYTES);
    }
    this.#closeBeyond(ofKeys, MOST_UNREAD_BYTES);
    // Others may come in place of those who ask nothing.
    if (this.#all.length >= this.#server.maxConnections) this.#server.closeIdleConnections();
    this.#tell();
  }

  /** Whether there is something to take; who takes nothing of it is closed in time. */
  #isUnread(connection: Connection, now: number): boolean {
    const { socket, unreadSince } = connection;
    if (socket.writableLength === 0) {
      connection.unreadSince = undefined;
      return false;
    }
    const takenBytes = takenBytesOf(socket);
    if (unreadSince === undefined || takenBytes > connection.takenBytes) {
      connection.unreadSince = now;
      connection.takenBytes = takenBytes;
    } else if (now - unreadSince >= TAKEN_WITHIN_MS) {
      this.#close(socket);
      return false;
    }
    return true;
  }

  #closeBeyond(connections: readonly Connection[], mostBytes: number): void {
    const open = connections.filter(({ socket }) => !socket.destroyed);
    let bytes = open.reduce((sum, { socket }) => sum + socket.writableLength, 0);
    for (const { socket } of open) {
      if (bytes <= mostBytes) return;
      bytes -= socket.writableLength;
      this.#close(socket);
    }
  }

  #close(socket: Socket): void {
    this.#closed += 1;
    // A reset: the system would else keep for its caller what it has not taken.
    socket.resetAndDestroy();
  }

  #tell(): void {
    const now = performance.now();
    if (this.#closed === 0 || now - this.#toldAt < TOLD_EVERY_MS) return;
    this.#log.warn({ closed: this.#closed }, 'connections are closed whose callers do not read');
    this.#toldAt = now;
    this.#closed = 0;
  }
}

const byUnreadSince = (a: Connection, b: Connection): number => (a.unreadSince ?? 0) - (b.unreadSince ?? 0);

/** How many bytes the system has taken off a socket; Node's own time-out of sockets goes by the same two counts. */
function takenBytesOf(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle: { bytesWritten: number; writeQueueSize: number } | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}
