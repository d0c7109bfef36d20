import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { Throttle } from '../common/throttle.ts';
import { kernelSendQueues, socketKey } from './kernel-send-queues.ts';

/** How many connections there are at most; a further one is closed as it comes. */
export const MAX_CONNECTIONS = 10_000;

/**
 * Whoever has an answer waiting, here or with the system, takes so many bytes of it in so many milliseconds, or the rest: some
 * 500 B/s. A byte now and then is not enough.
 */
export const MIN_TAKEN_BYTES = 16 * 1024;
export const TAKEN_WITHIN_MS = 30_000;

/**
 * How many bytes may stand unread of the answers to one key, and of all answers to keys; as many of all that is told without
 * a key. A page of the longest leads has about 1 MB.
 */
export const MAX_UNREAD_BYTES_PER_KEY = 8 * 1024 * 1024;
export const MAX_UNREAD_BYTES = 64 * 1024 * 1024;

/**
 * One address has no more than one part in so many of all connections, and of all that stands unread, so that there is always
 * room for another. No less either: behind a balancer one address is everybody.
 */
export const PARTS_FOR_ADDRESSES = 2;

/** How often connections are looked over: after so many milliseconds, or after answers of so many characters. */
export const LOOK_EVERY_MS = 1000;
export const LOOK_AFTER_CHARACTERS = 4 * 1024 * 1024;

/**
 * How often the system is asked what it keeps; milliseconds. It is asked about connections whose answers, since it was known to
 * keep nothing, had so many characters, the first of them that many milliseconds ago.
 */
export const ASK_EVERY_MS = 5000;
export const ASKED_FROM_CHARACTERS = 16 * 1024;
export const ASKED_AFTER_MS = 10_000;

/** How often the log tells of it, at most; milliseconds. */
const TOLD_EVERY_MS = 10_000;

/** How long callers are borne with, in milliseconds, and how often they are looked at. */
interface Patience {
  readonly takenWithinMs: number;
  readonly lookEveryMs: number;
  readonly askEveryMs: number;
  readonly askedAfterMs: number;
}

const PATIENCE: Patience = {
  takenWithinMs: TAKEN_WITHIN_MS,
  lookEveryMs: LOOK_EVERY_MS,
  askEveryMs: ASK_EVERY_MS,
  askedAfterMs: ASKED_AFTER_MS,
};

interface Connection {
  readonly socket: Socket;
  /** The caller's, or that of the balancer before it. */
  readonly address: string;
  /** Its place in the list. */
  index: number;
  /** Whose key the last answer was for. */
  apiKeyId: string | undefined;
  /** How long the answers are together since the system was found to keep nothing; characters. */
  answeredCharacters: number;
  /** When the first of them went out, on the clock of `performance`. */
  answeredSince: number;
  /** How much of them the system keeps, as far as it was asked; bytes. */
  keptBytes: number;
  /** Since when it has taken too little, on the clock of `performance`; undefined: all was taken. */
  unreadSince: number | undefined;
  /** How many bytes it had taken then. */
  takenBytes: number;
  /** The two as they were when the system was asked last. */
  asOfAsking: { readonly unreadSince: number; readonly takenBytes: number } | undefined;
}

/** Keeps what callers can make the gateway hold for them within bounds, by closing the connections of those who do not read. */
export class OpenConnections {
  readonly #server: Server;
  readonly #log: Logger;
  readonly #patience: Patience;
  // Not a `Map`, which keeps what it dropped when it lives long and changes much.
  readonly #all: Connection[] = [];
  readonly #bySocket = new WeakMap<Socket, Connection>();
  readonly #countByAddress = new Map<string, number>();
  #sentCharacters = 0;
  #closed = 0;
  #refused = 0;
  readonly #told = new Throttle(TOLD_EVERY_MS);

  constructor(server: Server, log: Logger, patience = PATIENCE) {
    this.#server = server;
    this.#log = log;
    this.#patience = patience;
    server.maxConnections = MAX_CONNECTIONS;
    server.on('connection', (socket) => this.#add(socket));
    server.on('drop', () => {
      this.#refused += 1;
    });
    const timers = [
      setInterval(() => this.#look(), patience.lookEveryMs).unref(),
      setInterval(() => this.#askSystem(), patience.askEveryMs).unref(),
    ];
    server.on('close', () => timers.forEach(clearInterval));
  }

  /** Is told of each answer before it goes out: how long it is, and for whose key, if for any. */
  answers(socket: Socket, characters: number, apiKeyId: string | undefined): void {
    const connection = this.#bySocket.get(socket);
    if (connection) {
      connection.apiKeyId = apiKeyId;
      if (connection.answeredCharacters === 0) connection.answeredSince = performance.now();
      connection.answeredCharacters += characters;
    }
    if (apiKeyId === undefined) return;
    this.#sentCharacters += characters;
    if (this.#sentCharacters >= LOOK_AFTER_CHARACTERS) this.#look();
  }

  #add(socket: Socket): void {
    // None any more when its caller has gone before it was taken in.
    const address = socket.remoteAddress ?? '';
    const count = (this.#countByAddress.get(address) ?? 0) + 1;
    if (count > this.#server.maxConnections / PARTS_FOR_ADDRESSES) {
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
      answeredCharacters: 0,
      answeredSince: 0,
      keptBytes: 0,
      unreadSince: undefined,
      takenBytes: 0,
      asOfAsking: undefined,
    };
    this.#all.push(connection);
    this.#bySocket.set(socket, connection);
    socket.on('close', () => this.#remove(connection));
  }

  #remove({ index, address }: Connection): void {
    const count = (this.#countByAddress.get(address) ?? 0) - 1;
    if (count > 0) this.#countByAddress.set(address, count);
    else this.#countByAddress.delete(address);
    // The last takes its place.
    const last = this.#all.pop();
    if (!last || last.index === index) return;
    last.index = index;
    this.#all[index] = last;
  }

  #look(): void {
    this.#sentCharacters = 0;
    // Whoever has stood longest goes first.
    const unread = this.#all.filter((connection) => this.#isUnread(connection, performance.now())).sort(byUnreadSince);
    const ofKeys = unread.filter(({ apiKeyId }) => apiKeyId !== undefined);
    const withoutKey = unread.filter(({ apiKeyId }) => apiKeyId === undefined);
    for (const ofKey of Map.groupBy(ofKeys, ({ apiKeyId }) => apiKeyId).values()) {
      this.#closeBeyond(ofKey, MAX_UNREAD_BYTES_PER_KEY);
    }
    for (const alike of [ofKeys, withoutKey]) {
      for (const ofAddress of Map.groupBy(alike, ({ address }) => address).values()) {
        this.#closeBeyond(ofAddress, MAX_UNREAD_BYTES / PARTS_FOR_ADDRESSES);
      }
      this.#closeBeyond(alike, MAX_UNREAD_BYTES);
    }
    // Others may come in place of those who ask nothing.
    if (this.#all.length >= this.#server.maxConnections) this.#server.closeIdleConnections();
    this.#tell();
  }

  /** Whether there is something to take; who takes too little of it is closed. */
  #isUnread(connection: Connection, now: number): boolean {
    const { socket, unreadSince, keptBytes } = connection;
    if (socket.writableLength === 0 && keptBytes === 0) {
      connection.unreadSince = undefined;
      connection.asOfAsking = undefined;
      return false;
    }
    const takenBytes = givenBytesOf(socket) - keptBytes;
    if (unreadSince === undefined || takenBytes - connection.takenBytes >= MIN_TAKEN_BYTES) {
      connection.unreadSince = now;
      connection.takenBytes = takenBytes;
    } else if (now - unreadSince >= this.#patience.takenWithinMs) {
      this.#close(socket);
      return false;
    }
    return true;
  }

  /** An answer that the system keeps is over for Node, and is not taken for all that. */
  async #askSystem(): Promise<void> {
    const { askedAfterMs } = this.#patience;
    const latestAt = performance.now() - askedAfterMs;
    const asked = this.#all.filter(
      ({ answeredCharacters, answeredSince }) =>
        answeredCharacters >= ASKED_FROM_CHARACTERS && answeredSince <= latestAt,
    );
    if (asked.length === 0) return;
    const kept = await kernelSendQueues();
    for (const connection of asked) {
      const { socket, unreadSince } = connection;
      connection.keptBytes = kept.get(socketKey(socket) ?? '') ?? 0;
      const takenBytes = givenBytesOf(socket) - connection.keptBytes;
      if (connection.keptBytes === 0 && socket.writableLength === 0) {
        connection.answeredCharacters = 0;
      } else if (unreadSince === undefined) {
        connection.unreadSince = performance.now() - askedAfterMs;
        connection.takenBytes = takenBytes;
      } else {
        // Until it was asked, all that it was given since the last time counted as taken.
        const { asOfAsking } = connection;
        const isTooLittle = asOfAsking && takenBytes - asOfAsking.takenBytes < MIN_TAKEN_BYTES;
        if (isTooLittle) Object.assign(connection, asOfAsking);
        else connection.takenBytes = Math.min(connection.takenBytes, takenBytes);
      }
      const { unreadSince: since, takenBytes: taken } = connection;
      connection.asOfAsking = since === undefined ? undefined : { unreadSince: since, takenBytes: taken };
    }
  }

  #closeBeyond(connections: readonly Connection[], mostBytes: number): void {
    const open = connections.filter(({ socket }) => !socket.destroyed);
    let bytes = open.reduce((sum, { socket }) => sum + unreadBytesOf(socket), 0);
    for (const { socket } of open) {
      if (bytes <= mostBytes) return;
      bytes -= unreadBytesOf(socket);
      this.#close(socket);
    }
  }

  #close(socket: Socket): void {
    this.#closed += 1;
    // A reset: the system would else keep for its caller what it has not taken.
    socket.resetAndDestroy();
  }

  #tell(): void {
    if (this.#closed + this.#refused === 0 || !this.#told.isDue()) return;
    if (this.#closed > 0) {
      this.#log.warn({ closed: this.#closed }, 'connections are closed whose callers do not read');
    }
    if (this.#refused > 0) {
      this.#log.warn(
        { refused: this.#refused },
        'connections are refused: all are taken, or all that one address may have',
      );
    }
    this.#closed = 0;
    this.#refused = 0;
  }
}

const byUnreadSince = (a: Connection, b: Connection): number => (a.unreadSince ?? 0) - (b.unreadSince ?? 0);

/** What Node counts for a connection itself; nothing once that is closed. */
const handleOf = (socket: Socket) =>
  (socket as unknown as { _handle: { bytesWritten: number; writeQueueSize: number } | null })._handle;

/** How many bytes wait for the system to take them. Of what was given as text, Node counts the characters until all is taken. */
function unreadBytesOf(socket: Socket): number {
  const handle = handleOf(socket);
  return Math.max(socket.writableLength, handle?.writeQueueSize ?? 0);
}

/** How many bytes the system was given; Node's own time-out of sockets goes by the same two counts. */
function givenBytesOf(socket: Socket): number {
  const handle = handleOf(socket);
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}
