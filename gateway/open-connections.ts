import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { Throttle } from '../common/throttle.ts';
import { kernelSendQueues, socketKey } from './kernel-send-queues.ts';

/** The maximum number of connections; further ones are closed immediately. */
export const MAX_CONNECTIONS = 10_000;

/**
 * A client with unread bytes, in the process or the kernel, must read MIN_READ_BYTES per READ_TIMEOUT_MS, or all of
 * them: some 500 B/s. Reading a byte now and then is not enough.
 */
export const MIN_READ_BYTES = 16 * 1024;
export const READ_TIMEOUT_MS = 30_000;

/**
 * The maximum number of unread bytes of the responses to one API key, and to all keys; the second also bounds all
 * responses without a key. A page of the longest leads has about 1 MB.
 */
export const MAX_UNREAD_BYTES_PER_KEY = 8 * 1024 * 1024;
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/**
 * One address may hold at most one part in ADDRESS_SHARE_DIVISOR of all connections and of all unread bytes, so that
 * others always find room. The share is not smaller because behind a load balancer one address is every client.
 */
export const ADDRESS_SHARE_DIVISOR = 2;

/** Connections are checked at this interval, and after responses of this many characters. */
export const CHECK_INTERVAL_MS = 1000;
const CHECK_AFTER_CHARACTERS = 4 * 1024 * 1024;

/**
 * The kernel's send queues are read at this interval. A connection is looked up when, since its send queue was known to
 * be empty, at least KERNEL_QUERY_MIN_BYTES were sent on it, the first of them at least KERNEL_QUERY_MIN_AGE_MS ago.
 */
export const KERNEL_QUERY_INTERVAL_MS = 5000;
const KERNEL_QUERY_MIN_BYTES = 16 * 1024;
const KERNEL_QUERY_MIN_AGE_MS = 10_000;

const LOG_INTERVAL_MS = 10_000;

const TIMING = {
  readTimeoutMs: READ_TIMEOUT_MS,
  checkIntervalMs: CHECK_INTERVAL_MS,
  kernelQueryIntervalMs: KERNEL_QUERY_INTERVAL_MS,
  kernelQueryMinAgeMs: KERNEL_QUERY_MIN_AGE_MS,
};

interface Connection {
  readonly socket: Socket;
  /** The client's address, or that of the load balancer in front. */
  readonly address: string;
  /** Its index in the list of connections. */
  index: number;
  /** The API key of the last response. */
  apiKeyId: string | undefined;
  /** The number of bytes that had been sent when the kernel's send queue was known to be empty. */
  emptyAtBytes: number;
  /** When more was first seen to have been sent, by `performance.now()`; undefined: nothing was. */
  sentSince: number | undefined;
  /** The length of the kernel's send queue at the last query; bytes. */
  kernelBytes: number;
  /** Since when the client has read too little, by `performance.now()`; undefined: nothing is unread. */
  unreadSince: number | undefined;
  /** The number of bytes that the client had read at `unreadSince`. */
  readBytes: number;
  /** `unreadSince` and `readBytes` at the last query of the kernel. */
  atLastQuery: { readonly unreadSince: number; readonly readBytes: number } | undefined;
}

/** Bounds the memory that slow readers take, by closing their connections. */
export class OpenConnections {
  readonly #server: Server;
  readonly #log: Logger;
  readonly #timing: typeof TIMING;
  // Not a `Map`, which retains removed entries when it lives long and changes often.
  readonly #all: Connection[] = [];
  readonly #bySocket = new WeakMap<Socket, Connection>();
  readonly #countByAddress = new Map<string, number>();
  #charactersSinceCheck = 0;
  #closed = 0;
  #refused = 0;
  readonly #logThrottle = new Throttle(LOG_INTERVAL_MS);

  constructor(server: Server, log: Logger, timing = TIMING) {
    this.#server = server;
    this.#log = log;
    this.#timing = timing;
    server.maxConnections = MAX_CONNECTIONS;
    server.on('connection', (socket) => this.#add(socket));
    server.on('drop', () => {
      this.#refused += 1;
    });
    const timers = [
      setInterval(() => this.#check(), timing.checkIntervalMs).unref(),
      setInterval(() => this.#queryKernel(), timing.kernelQueryIntervalMs).unref(),
    ];
    server.on('close', () => timers.forEach(clearInterval));
  }

  /** Records a response before it is sent: its length, and the API key that it is for, if any. */
  recordResponse(socket: Socket, characters: number, apiKeyId: string | undefined): void {
    const connection = this.#bySocket.get(socket);
    if (connection) connection.apiKeyId = apiKeyId;
    if (apiKeyId === undefined) return;
    this.#charactersSinceCheck += characters;
    if (this.#charactersSinceCheck >= CHECK_AFTER_CHARACTERS) this.#check();
  }

  #add(socket: Socket): void {
    // Undefined when the client disconnected before the connection was accepted.
    const address = socket.remoteAddress ?? '';
    const count = (this.#countByAddress.get(address) ?? 0) + 1;
    if (count > this.#server.maxConnections / ADDRESS_SHARE_DIVISOR) {
      this.#refused += 1;
      socket.destroy();
      return;
    }
    this.#countByAddress.set(address, count);
    const connection = {
      socket,
      address,
      index: this.#all.length,
      apiKeyId: undefined,
      emptyAtBytes: 0,
      sentSince: undefined,
      kernelBytes: 0,
      unreadSince: undefined,
      readBytes: 0,
      atLastQuery: undefined,
    };
    this.#all.push(connection);
    this.#bySocket.set(socket, connection);
    socket.on('close', () => this.#remove(connection));
  }

  #remove({ index, address }: Connection): void {
    const count = (this.#countByAddress.get(address) ?? 0) - 1;
    if (count > 0) this.#countByAddress.set(address, count);
    else this.#countByAddress.delete(address);
    // The last connection moves to the index of the removed one.
    const last = this.#all.pop();
    if (!last || last.index === index) return;
    last.index = index;
    this.#all[index] = last;
  }

  #check(): void {
    this.#charactersSinceCheck = 0;
    // In the order in which they are closed: unread for the longest time first.
    const unread = this.#all.filter((connection) => this.#isUnread(connection, performance.now())).sort(byUnreadSince);
    const ofKeys = unread.filter(({ apiKeyId }) => apiKeyId !== undefined);
    const withoutKey = unread.filter(({ apiKeyId }) => apiKeyId === undefined);
    for (const ofKey of Map.groupBy(ofKeys, ({ apiKeyId }) => apiKeyId).values()) {
      this.#closeBeyond(ofKey, MAX_UNREAD_BYTES_PER_KEY);
    }
    for (const alike of [ofKeys, withoutKey]) {
      for (const ofAddress of Map.groupBy(alike, ({ address }) => address).values()) {
        this.#closeBeyond(ofAddress, MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR);
      }
      this.#closeBeyond(alike, MAX_UNREAD_BYTES);
    }
    // Idle connections make room for new ones.
    if (this.#all.length >= this.#server.maxConnections) this.#server.closeIdleConnections();
    this.#logCounts();
  }

  /** Returns whether a connection has unread bytes. Closes it when its client reads too slowly. */
  #isUnread(connection: Connection, now: number): boolean {
    const { socket, unreadSince, kernelBytes } = connection;
    // By the socket, not by what is recorded: some answers are sent before the framework asks anything of us.
    if (sentBytesOf(socket) > connection.emptyAtBytes) connection.sentSince ??= now;
    if (socket.writableLength === 0 && kernelBytes === 0) {
      connection.unreadSince = undefined;
      connection.atLastQuery = undefined;
      return false;
    }
    const readBytes = writtenBytesOf(socket) - kernelBytes;
    if (unreadSince === undefined || readBytes - connection.readBytes >= MIN_READ_BYTES) {
      connection.unreadSince = now;
      connection.readBytes = readBytes;
    } else if (now - unreadSince >= this.#timing.readTimeoutMs) {
      this.#close(socket);
      return false;
    }
    return true;
  }

  /** Reads the kernel's send queues: to Node, a response is sent once the kernel has it. */
  async #queryKernel(): Promise<void> {
    const { kernelQueryMinAgeMs } = this.#timing;
    const sentBefore = performance.now() - kernelQueryMinAgeMs;
    const queried = this.#all.filter(
      ({ socket, emptyAtBytes, sentSince = Number.POSITIVE_INFINITY }) =>
        sentBytesOf(socket) - emptyAtBytes >= KERNEL_QUERY_MIN_BYTES && sentSince <= sentBefore,
    );
    if (queried.length === 0) return;
    const queues = await kernelSendQueues();
    for (const connection of queried) {
      const { socket, unreadSince } = connection;
      connection.kernelBytes = queues.get(socketKey(socket) ?? '') ?? 0;
      const readBytes = writtenBytesOf(socket) - connection.kernelBytes;
      if (connection.kernelBytes === 0 && socket.writableLength === 0) {
        connection.emptyAtBytes = sentBytesOf(socket);
        connection.sentSince = undefined;
      } else if (unreadSince === undefined) {
        connection.unreadSince = performance.now() - kernelQueryMinAgeMs;
        connection.readBytes = readBytes;
      } else {
        // Between two queries, everything that the kernel took since the first counted as read.
        const { atLastQuery } = connection;
        const isTooLittle = atLastQuery && readBytes - atLastQuery.readBytes < MIN_READ_BYTES;
        if (isTooLittle) Object.assign(connection, atLastQuery);
        else connection.readBytes = Math.min(connection.readBytes, readBytes);
      }
      const { unreadSince: since, readBytes: read } = connection;
      connection.atLastQuery = since === undefined ? undefined : { unreadSince: since, readBytes: read };
    }
  }

  #closeBeyond(connections: readonly Connection[], maxBytes: number): void {
    const open = connections.filter(({ socket }) => !socket.destroyed);
    let bytes = open.reduce((sum, { socket }) => sum + unreadBytesOf(socket), 0);
    for (const { socket } of open) {
      if (bytes <= maxBytes) return;
      bytes -= unreadBytesOf(socket);
      this.#close(socket);
    }
  }

  #close(socket: Socket): void {
    this.#closed += 1;
    // A reset, because after a graceful close the kernel would keep the unread bytes for the client.
    socket.resetAndDestroy();
  }

  #logCounts(): void {
    if (this.#closed + this.#refused === 0 || !this.#logThrottle.allow()) return;
    if (this.#closed > 0) {
      this.#log.warn({ closed: this.#closed }, 'connections closed: their clients do not read the responses');
    }
    if (this.#refused > 0) {
      this.#log.warn(
        { refused: this.#refused },
        'connections refused: the maximum, or that of one address, is reached',
      );
    }
    this.#closed = 0;
    this.#refused = 0;
  }
}

const byUnreadSince = (a: Connection, b: Connection): number => (a.unreadSince ?? 0) - (b.unreadSince ?? 0);

/** Node's internal handle, which has the byte counts of a connection; null once it is closed. */
const handleOf = (socket: Socket) =>
  (socket as unknown as { _handle: { bytesWritten: number; writeQueueSize: number } | null })._handle;

/** Returns the number of bytes that the kernel has not taken. `writableLength` counts strings in characters. */
function unreadBytesOf(socket: Socket): number {
  const handle = handleOf(socket);
  return Math.max(socket.writableLength, handle?.writeQueueSize ?? 0);
}

/** Returns the number of bytes of all responses on a connection, taken by the kernel or not. */
const sentBytesOf = (socket: Socket): number => handleOf(socket)?.bytesWritten ?? 0;

/** Returns the number of bytes that the kernel has taken. Node's own socket timeout uses the same two counts. */
function writtenBytesOf(socket: Socket): number {
  const handle = handleOf(socket);
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}
