import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import { Lingering } from '../../common/lingering.ts';
import { Throttle } from '../../common/throttle.ts';
import { toClient } from '../client-address.ts';
import type { Problem } from '../problems.ts';

/** The maximum number of connections; further ones are closed immediately. */
export const MAX_CONNECTIONS = 10_000;

/** The maximum number of connections that linger after their last answer. */
export const MAX_LINGERING = 1000;

/** A client must read at least MIN_READ_BYTES of its buffered responses per READ_TIMEOUT_MS, or all of the rest. */
export const MIN_READ_BYTES = 16 * 1024;
export const READ_TIMEOUT_MS = 30_000;

/** The maximum number of unread response bytes: of one key, and of all keys. Responses without a key have their own MAX_UNREAD_BYTES. */
export const MAX_UNREAD_BYTES_PER_KEY = 8 * 1024 * 1024;
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/** One client gets half of MAX_CONNECTIONS and MAX_UNREAD_BYTES, so others find room. A load balancer counts as one client. */
export const ADDRESS_SHARE_DIVISOR = 2;

/** Connections are checked at this interval, and after this many characters of responses to API keys. */
const CHECK_INTERVAL_MS = 1000;
const CHECK_AFTER_CHARACTERS = 4 * 1024 * 1024;

/** The maximum number of waiting requests on all connections. Each takes up to 4 KB of memory, and its body. */
export const MAX_WAITING_REQUESTS = 20_000;

const LOG_INTERVAL_MS = 10_000;
const TIMING = { arrivalMs: REQUEST_ARRIVAL_MS, readTimeoutMs: READ_TIMEOUT_MS, checkIntervalMs: CHECK_INTERVAL_MS };

class Connection {
  readonly socket: Socket;
  /** The address of the client, or of the load balancer in front of it. */
  readonly client: string;
  /** The current response, and whatever waits for its end: requests, or the answer that ends the connection. */
  current: ServerResponse | undefined;
  readonly waiting: (() => void)[] = [];
  /** The request whose head arrived last. */
  last: IncomingMessage | undefined;
  /** Whether further input is no longer read as requests. */
  isEnding = false;
  /** Refuses a request that became late while its connection was paused. */
  refuseLate: (() => void) | undefined;
  /** The fault of the current request's body. */
  fault: Problem | undefined;
  /** The API key of the last response. */
  apiKeyId: string | undefined;
  /** When the client began to read too little, by `performance.now()`, and the bytes that it had read by then. */
  unreadSince: number | undefined;
  takenBytes = 0;

  constructor(socket: Socket, client: string) {
    this.socket = socket;
    this.client = client;
  }
}

/**
 * The connections of the gateway's port. Closes connections of slow readers, whose responses would fill the memory. Handles the requests of
 * a connection one at a time, in order, and pauses the connection while requests wait. Handles nothing after the response that closes the
 * connection (RFC 9112, section 9.6): the client could not receive the outcome.
 */
export class ClientConnections {
  readonly timing: typeof TIMING;
  readonly #log: Logger;
  readonly #all = new Map<Socket, Connection>();
  readonly #countByClient = new Map<string, number>();
  readonly #lingering = new Lingering(MAX_LINGERING);
  #waiting = 0;
  #charactersSinceCheck = 0;
  #closed = 0;
  #refused = 0;
  readonly #logThrottle = new Throttle(LOG_INTERVAL_MS);

  constructor(log: Logger, timing: Partial<typeof TIMING> = {}) {
    this.#log = log;
    this.timing = { ...TIMING, ...timing };
  }

  /** Limits the connections of a server. */
  watch(server: Server): void {
    server.maxConnections = MAX_CONNECTIONS;
    server.on('connection', (socket) => this.#add(socket, server.maxConnections / ADDRESS_SHARE_DIVISOR));
    server.on('drop', () => this.#refused++);
    const check = () => {
      this.#check();
      // Closes idle connections to make room for new ones.
      if (this.#all.size >= server.maxConnections) server.closeIdleConnections();
    };
    const timer = setInterval(check, this.timing.checkIntervalMs).unref();
    server.on('close', () => clearInterval(timer));
  }

  /** Calls the handler at once, or after the responses to the connection's earlier requests. */
  serve(request: IncomingMessage, response: ServerResponse, handler: RequestListener): void {
    // Node checks for a listener, then emits the error a tick later, when that listener may be gone.
    request.on('error', ignore);
    const connection = this.#findOpenConnection(request.socket);
    if (!connection) return;
    const run = () => {
      connection.current = response;
      response.on('close', () => this.#next(connection));
      // Upgrades are not supported. Node may drop the bytes after such a request, so it is the connection's last.
      if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
      handler(request, response);
    };
    connection.last = request;
    if (!connection.current) run();
    else if (this.#waiting < MAX_WAITING_REQUESTS) this.#wait(connection, run);
    // Closes the connection after its current requests.
    else connection.isEnding = true;
  }

  /**
   * Answers malformed or late input after the responses to earlier requests, and ends the connection. If the input is the body of the
   * current request, the fault becomes that request's only response.
   */
  refuse(socket: Socket, problem: Problem, answer: (request: IncomingMessage | undefined) => void): void {
    // Node reports the error again for each further chunk.
    const connection = this.#findOpenConnection(socket);
    if (!connection) return;
    const { current, last, waiting } = connection;
    if (problem.status === 408 && waiting.length > 0) {
      connection.refuseLate = () => this.refuse(socket, problem, answer);
      return;
    }
    connection.isEnding = true;
    const arriving = last?.complete === false ? last : undefined;
    if (arriving && waiting.length > 0) {
      waiting.splice(-1, 1, () => answer(arriving));
    } else if (arriving && current && !current.headersSent) {
      connection.fault = problem;
      current.shouldKeepAlive = false;
      arriving.emit('error', problem);
    } else {
      // A request that is still arriving and does not wait already has its response.
      const run = () => (arriving ? socket.destroySoon() : answer(undefined));
      if (current) this.#wait(connection, run);
      else run();
    }
  }

  /** Returns the fault of the current request's body. */
  findBodyFault({ socket }: IncomingMessage): Problem | undefined {
    return this.#all.get(socket)?.fault;
  }

  /** Records a response before it is sent: its length, and its API key, if any. */
  recordResponse(socket: Socket, characters: number, apiKeyId: string | undefined): void {
    const connection = this.#all.get(socket);
    if (connection) connection.apiKeyId = apiKeyId;
    if (apiKeyId !== undefined) this.#charactersSinceCheck += characters;
    if (this.#charactersSinceCheck >= CHECK_AFTER_CHARACTERS) this.#check();
  }

  /** Ends requests that are still arriving, as late. Node does not do so once its server is closed. */
  endArriving(server: Server): void {
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    for (const [socket, { last }] of this.#all) if (last?.complete === false) server.emit('clientError', late, socket);
  }

  /** Resets all connections, including those that Node's server forgot after CONNECT. */
  closeAll(): void {
    for (const socket of this.#all.keys()) socket.resetAndDestroy();
  }

  /** Returns a connection, unless its input is no longer read as requests. */
  #findOpenConnection(socket: Socket): Connection | undefined {
    const connection = this.#all.get(socket);
    return connection?.isEnding || !socket.writable ? undefined : connection;
  }

  #wait(connection: Connection, run: () => void): void {
    this.#waiting += 1;
    // In the next tick: if Node resumed the socket in this one, a pause now would be undone.
    if (connection.waiting.push(run) === 1) process.nextTick(() => connection.socket.pause());
  }

  #next(connection: Connection): void {
    const { socket, waiting } = connection;
    if (waiting.length === 0) {
      connection.current = undefined;
      if (connection.isEnding) socket.destroySoon();
      return;
    }
    // In the next turn of the event loop, so that a connection full of requests does not delay the others.
    setImmediate(() => {
      // A connection that cannot be written to is closed or closing: its waiting requests are dropped.
      const removed = waiting.splice(0, socket.writable ? 1 : waiting.length);
      this.#waiting -= removed.length;
      if (socket.writable) removed[0]?.();
      if (waiting.length === 0) this.#resume(connection);
    });
  }

  /** Resumes reading. A request that became late during the pause gets a new deadline, because Node reports it only once. */
  #resume(connection: Connection): void {
    const { socket, last, refuseLate } = connection;
    socket.resume();
    if (!refuseLate) return;
    connection.refuseLate = undefined;
    const wasComplete = last?.complete;
    setTimeout(() => {
      const hasArrived = connection.last?.complete && !(connection.last === last && wasComplete);
      if (!hasArrived) refuseLate();
    }, this.timing.arrivalMs).unref();
  }

  #add(socket: Socket, maxPerClient: number): void {
    // CONNECT removes Node's own listener.
    socket.on('error', ignore);
    // Undefined when the client disconnected before the connection was accepted.
    const client = toClient(socket.remoteAddress ?? '');
    const count = (this.#countByClient.get(client) ?? 0) + 1;
    if (count > maxPerClient) {
      this.#refused += 1;
      socket.destroy();
      return;
    }
    this.#countByClient.set(client, count);
    const connection = new Connection(socket, client);
    this.#all.set(socket, connection);
    this.#lingering.watch(socket);
    // Node resumes the socket at the end of each request.
    socket.on('resume', () => {
      if (connection.waiting.length > 0) socket.pause();
    });
    socket.on('close', () => {
      this.#all.delete(socket);
      const rest = (this.#countByClient.get(client) ?? 0) - 1;
      if (rest > 0) this.#countByClient.set(client, rest);
      else this.#countByClient.delete(client);
    });
  }

  #check(): void {
    this.#charactersSinceCheck = 0;
    const now = performance.now();
    const unread = [...this.#all.values()].filter((connection) => this.#isUnread(connection, now)).sort(newestFirst);
    this.#closeBeyond(MAX_UNREAD_BYTES_PER_KEY, unread.filter(hasKey), ({ apiKeyId }) => apiKeyId);
    this.#closeBeyond(MAX_UNREAD_BYTES / ADDRESS_SHARE_DIVISOR, unread, (one) => `${hasKey(one)} ${one.client}`);
    this.#closeBeyond(MAX_UNREAD_BYTES, unread, hasKey);
    if (this.#closed + this.#refused === 0 || !this.#logThrottle.allow()) return;
    const [closed, refused] = [this.#closed, this.#refused];
    if (closed > 0) this.#log.warn({ closed }, 'connections closed: their clients do not read the responses');
    if (refused > 0)
      this.#log.warn({ refused }, 'connections refused: the maximum, or the share of one address, is reached');
    this.#closed = 0;
    this.#refused = 0;
  }

  /** Returns whether a connection has unread bytes. Closes it when its client reads too slowly. */
  #isUnread(connection: Connection, now: number): boolean {
    const { socket, unreadSince } = connection;
    const { unreadBytes, takenBytes } = countSocketBytes(socket);
    const isSlow = unreadSince !== undefined && takenBytes - connection.takenBytes < MIN_READ_BYTES;
    if (unreadBytes === 0) connection.unreadSince = undefined;
    else if (!isSlow) Object.assign(connection, { unreadSince: now, takenBytes });
    else if (now - unreadSince >= this.timing.readTimeoutMs) this.#close(socket);
    return unreadBytes > 0;
  }

  /** Closes the longest unread connections of each group, until the rest have at most `maxBytes`. */
  #closeBeyond(maxBytes: number, newestFirst: readonly Connection[], toGroup: (one: Connection) => unknown): void {
    const open = newestFirst.filter(({ socket }) => !socket.destroyed);
    for (const group of Map.groupBy(open, toGroup).values()) {
      let bytes = 0;
      for (const { socket } of group) {
        bytes += countSocketBytes(socket).unreadBytes;
        if (bytes > maxBytes) this.#close(socket);
      }
    }
  }

  #close(socket: Socket): void {
    this.#closed += 1;
    // A reset, because after a graceful close the kernel would keep the unread bytes for the client.
    socket.resetAndDestroy();
  }
}

/** A listener for errors that need no action. An error without a listener would end the process. */
const ignore = () => {};
const newestFirst = (a: Connection, b: Connection): number => (b.unreadSince ?? 0) - (a.unreadSince ?? 0);
const hasKey = ({ apiKeyId }: Connection): boolean => apiKeyId !== undefined;

/** Returns how many response bytes wait in this process, and how many the kernel has taken from it. */
function countSocketBytes(socket: Socket): { readonly unreadBytes: number; readonly takenBytes: number } {
  // Node's internal handle, null once it is closed. `writableLength` counts strings in characters.
  const { _handle: handle } = socket as unknown as { _handle: { bytesWritten: number; writeQueueSize: number } | null };
  const { bytesWritten = 0, writeQueueSize = 0 } = handle ?? {};
  return { unreadBytes: Math.max(socket.writableLength, writeQueueSize), takenBytes: bytesWritten - writeQueueSize };
}
