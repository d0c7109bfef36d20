import { createHash } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { compileScript, type LuaValue, type Script } from './lua.ts';

/** A text and its expiry; milliseconds since 1970, undefined: never. */
export interface Entry {
  readonly text: string;
  readonly expiresAt: number | undefined;
}

/** The stored entries of a server, by name. */
export type Entries = Map<string, Entry>;

/** The faults of commands and their replies. */
export interface Weather {
  /** The probability that a request or its reply is lost, wholly or in part, together with the connection. */
  losses: number;
  /** The probability that a command takes up to half a second while all others wait. */
  slowness: number;
  /** The error with which every count is refused. */
  refusal: string | undefined;
}

/** The parts of the deployment that a server uses. */
export interface Surroundings {
  readonly weather: Weather;
  /** The wall clock of its machine; milliseconds since 1970. */
  now(): number;
  /** Called with the name of an entry in which a command has counted a request. */
  counted?(name: string): void;
  /** Called when a client sends a command that is not simulated. */
  fail(error: Error): void;
}

/** A reply: an integer, a text, null, a status, or several. */
type Reply = number | string | null | Status | readonly Reply[];

class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** An error that the client gets. */
class RedisError extends Error {}

/** A command that is not simulated. */
class NotInRedis extends Error {}

const OK = new Status('OK');
const LOADING = 'LOADING Redis is loading the dataset in memory';

/**
 * A process of Redis that stores texts, counters and their expiries, runs the product's scripts unchanged, and speaks RESP3
 * on a socket of `node:net`. It supports the commands of the product and its tests; any other fails with its name.
 */
export class RedisServer {
  readonly entries: Entries;
  isLoading = false;
  readonly #around: Surroundings;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #scripts = new Map<string, Script>();
  /** Connections that get no more replies. */
  readonly #silent = new WeakSet<Socket>();
  /** Ends when all commands so far have ended: they run one after another. */
  #queue = Promise.resolve();
  #nowMs = 0;

  constructor(entries: Entries, around: Surroundings) {
    this.entries = entries;
    this.#around = around;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  start(port: number): void {
    this.#server.listen(port, '127.0.0.1');
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    const take = (words: readonly string[]) => {
      this.#queue = this.#queue.then(() => this.#answer(socket, words)).catch((error) => this.#around.fail(error));
    };
    socket.on('data', parseCommands(take));
  }

  async #answer(socket: Socket, words: readonly string[]): Promise<void> {
    const { losses, slowness } = this.#around.weather;
    if (slowness > 0 && Math.random() < slowness) await sleep(Math.random() * 500);
    if (!socket.writable) return;
    const fate = losses > 0 && Math.random() < losses ? Math.random() : 1;
    if (fate < 0.3) {
      // The request is lost.
      socket.destroy();
      return;
    }
    const reply = toBytes(this.#replyTo(words));
    if (fate < 0.5) this.#silent.add(socket);
    if (this.#silent.has(socket)) return;
    if (fate === 1) socket.write(reply);
    else socket.end(reply.subarray(0, fate < 0.7 ? 0 : Math.floor(Math.random() * reply.length)));
  }

  #replyTo([name = '', ...args]: readonly string[]): Reply | RedisError {
    try {
      this.#nowMs = this.#around.now();
      return /^EVAL/i.test(name) ? this.#eval(name.toUpperCase(), args) : this.#run(name.toUpperCase(), args);
    } catch (error) {
      if (error instanceof RedisError) return error;
      this.#around.fail(error as Error);
      return new RedisError(`ERR ${error}`);
    }
  }

  #eval(name: string, [which = '', count = '', ...rest]: readonly string[]): Reply {
    if (this.isLoading) throw new RedisError(LOADING);
    const { refusal } = this.#around.weather;
    if (refusal !== undefined) throw new RedisError(refusal);
    const hash = name === 'EVAL' ? createHash('sha1').update(which).digest('hex') : which;
    if (name === 'EVAL' && !this.#scripts.has(hash))
      this.#scripts.set(
        hash,
        compileScript(which, (command, ...values) => toLua(this.#run(command, values.map(String)))),
      );
    const script = this.#scripts.get(hash);
    if (!script) throw new RedisError('NOSCRIPT No matching script. Please use EVAL.');
    return toReply(script(rest.slice(0, Number(count)), rest.slice(Number(count))));
  }

  /** Runs a command of a client or a script. */
  #run(name: string, args: readonly string[]): Reply {
    const [key = '', value = '', ...more] = args;
    const entry = this.#entry(key);
    const put = (changed: Entry | undefined, reply: Reply): Reply => {
      const isGone = changed?.expiresAt !== undefined && changed.expiresAt <= this.#nowMs;
      if (!changed || isGone) this.entries.delete(key);
      else this.entries.set(key, changed);
      if (name === 'SET' || name === 'INCR') this.#around.counted?.(key);
      return reply;
    };
    const expiring = (expiresAt: number) => (entry ? put({ ...entry, expiresAt }, 1) : 0);
    const adding = (by: number) => {
      const count = entry?.text ?? '0';
      if (!/^(?:0|-?[1-9]\d{0,14})$/.test(count)) throw new RedisError('ERR value is not an integer or out of range');
      return put({ text: `${Number(count) + by}`, expiresAt: entry?.expiresAt }, Number(count) + by);
    };
    switch (name) {
      case 'HELLO':
        return ['server', 'redis', 'proto', 3, 'role', 'master'];
      case 'CLIENT':
        return OK;
      case 'PING':
        return new Status('PONG');
      case 'TIME':
        return [`${Math.floor(this.#nowMs / 1000)}`, `${(this.#nowMs % 1000) * 1000}`];
      case 'GET':
        return entry?.text ?? null;
      case 'TYPE':
        return new Status(entry ? 'string' : 'none');
      case 'PTTL':
        return entry ? (entry.expiresAt === undefined ? -1 : entry.expiresAt - this.#nowMs) : -2;
      case 'PEXPIRETIME':
        return entry ? (entry.expiresAt ?? -1) : -2;
      case 'SET':
        if (more.length > 0 && more[0] !== 'PX') throw new NotInRedis(`SET ${args}`);
        return put({ text: value, expiresAt: more[1] === undefined ? undefined : this.#nowMs + Number(more[1]) }, OK);
      case 'DEL':
        return args.reduce((count, each) => count + Number(this.entries.delete(each)), 0);
      case 'PEXPIRE':
        return expiring(this.#nowMs + Number(value));
      case 'PEXPIREAT':
        return expiring(Number(value));
      case 'INCR':
        return adding(1);
      case 'DECR':
        return adding(-1);
      default:
        throw new NotInRedis(`the command ${name}`);
    }
  }

  #entry(name: string): Entry | undefined {
    const entry = this.entries.get(name);
    const isExpired = entry?.expiresAt !== undefined && entry.expiresAt <= this.#nowMs;
    return isExpired ? undefined : entry;
  }
}

/** Returns the form in which a script gets a reply. */
function toLua(reply: Reply): LuaValue {
  if (reply === null) return false;
  if (reply instanceof Status) return { ok: reply.text };
  return typeof reply === 'object' ? reply.map(toLua) : reply;
}

/** Returns the form in which a client gets the result of a script. */
function toReply(value: LuaValue): Reply {
  if (value === null || value === false) return null;
  if (value === true) return 1;
  if (typeof value === 'number') return Math.trunc(value);
  return typeof value === 'string' ? value : Object.values(value).map(toReply);
}

const toBytes = (reply: Reply | RedisError): Buffer => Buffer.from(encode(reply), 'latin1');

/** Encodes a reply in RESP3; each character of a text is a byte. */
function encode(reply: Reply | RedisError): string {
  if (reply === null) return '_\r\n';
  if (reply instanceof RedisError) return `-${reply.message}\r\n`;
  if (reply instanceof Status) return `+${reply.text}\r\n`;
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  return `*${reply.length}\r\n${reply.map(encode).join('')}`;
}

/** Returns a function that takes bytes, and calls back with the words of each complete command. */
function parseCommands(take: (words: readonly string[]) => void): (bytes: Buffer) => void {
  let received = '';
  return (bytes) => {
    received += bytes.toString('latin1');
    for (let length = parseCommand(received, take); length > 0; length = parseCommand(received, take))
      received = received.slice(length);
  };
}

/** Parses the first command of a text; returns its length, or 0 if it is incomplete. */
function parseCommand(received: string, take: (words: readonly string[]) => void): number {
  const head = /^\*(\d+)\r\n/.exec(received);
  if (!head) {
    if (received.includes('\r\n')) throw new NotInRedis(`a command without a head: ${received.slice(0, 40)}`);
    return 0;
  }
  const words: string[] = [];
  let at = head[0].length;
  for (let left = Number(head[1]); left > 0; left -= 1) {
    const end = received.indexOf('\r\n', at);
    if (end < 0) return 0;
    const length = Number(received.slice(at + 1, end));
    if (received.length < end + 4 + length) return 0;
    words.push(received.slice(end + 2, end + 2 + length));
    at = end + 4 + length;
  }
  take(words);
  return at;
}
