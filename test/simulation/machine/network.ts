import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Server as HttpServer, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { here, type SimulatedNode } from './machine.ts';

/* Replacements of Node's TCP by a network of the machine. Every node has the address 127.0.0.1. */

/** The bytes that may be in flight in one direction of a connection; then its sender waits. */
const WINDOW_BYTES = 64 * 1024;

/** The shortest and longest latency of bytes; milliseconds. */
const MIN_LATENCY_MS = 0.02;
const MAX_LATENCY_MS = 0.8;

/** The interval of retries to a suspended or disconnected node; milliseconds. */
const RETRY_MS = 20;

/** The system assigns the ports above this one. */
const LAST_FIXED_PORT = 40_000;

/** The probability that bytes written together arrive apart. */
const SPLITS = 0.02;

/** The network of one machine. */
export class Network {
  readonly listeners = new Map<number, Listener>();
  connections = 0;
  /** Whether no bytes pass between two nodes: those sent are retransmitted until they do. */
  isCut: (one: SimulatedNode, other: SimulatedNode) => boolean = () => false;
  #ports = LAST_FIXED_PORT;

  /** Returns an unused port. */
  newPort(): number {
    this.#ports += 1;
    return this.#ports;
  }
}

let network = new Network();

/** Selects the network of this process; there is one at a time. */
export function useNetwork(used: Network): void {
  network = used;
}

/** A server that listens. */
interface Listener {
  readonly server: net.Server;
  readonly node: SimulatedNode;
  readonly inContext: ReturnType<typeof AsyncLocalStorage.snapshot>;
  release(): void;
}

/** Bytes in flight in one direction of a connection. */
interface Transmission {
  readonly atMs: number;
  readonly what: Buffer | 'end' | 'close' | 'reset';
}

/** One end of a connection. */
export class SimulatedSocket extends Duplex {
  readonly name: string;
  readonly node: SimulatedNode;
  readonly remoteAddress = '127.0.0.1';
  readonly localAddress = '127.0.0.1';
  readonly remoteFamily = 'IPv4';
  readonly remotePort: number;
  readonly localPort: number;
  connecting = false;
  bytesWritten = 0;
  bytesRead = 0;
  peer: SimulatedSocket | undefined;
  readonly setNoDelay = () => this;
  readonly setKeepAlive = () => this;
  readonly ref = () => this;
  readonly unref = () => this;
  readonly #inContext = AsyncLocalStorage.snapshot();
  /** Bytes that this end has sent and its peer has not received. */
  readonly #sent: Transmission[] = [];
  #sentBytes = 0;
  #lastArrivalMs = 0;
  #isArrivalScheduled = false;
  /** Continues writing when the window has room. */
  #whenRoom: (() => void) | undefined;
  #takesMore = true;
  #idleMs = 0;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(name: string, node: SimulatedNode, localPort: number, remotePort: number, allowHalfOpen: boolean) {
    super({ allowHalfOpen });
    this.name = name;
    this.node = node;
    this.localPort = localPort;
    this.remotePort = remotePort;
    const resource = { release: () => this.#abandon() };
    node.resources.add(resource);
    this.once('close', () => node.resources.delete(resource));
  }

  /** Establishes the connection, and sends the bytes written before. */
  connected(peer: SimulatedSocket): void {
    this.peer = peer;
    this.connecting = false;
    this.#transmit();
  }

  override _read(): void {
    this.#takesMore = true;
    if (this.peer) this.peer.#transmit();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: () => void): void {
    const bytes = Buffer.isBuffer(chunk) ? Buffer.from(chunk) : Buffer.from(chunk, encoding);
    this.#restartIdleTimer();
    this.bytesWritten += bytes.length;
    this.#sentBytes += bytes.length;
    const { chance } = this.node.machine;
    const cut = bytes.length > 1 && chance.number() < SPLITS ? chance.between(1, bytes.length - 1) : 0;
    for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)]) if (part.length > 0) this.#send(part);
    if (this.#sentBytes < WINDOW_BYTES) done();
    else this.#whenRoom = done;
  }

  override _final(done: () => void): void {
    this.#send('end');
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idleTimer);
    this.#send('close');
    done(error);
  }

  setTimeout(idleMs: number, callback?: () => void): this {
    this.#idleMs = idleMs;
    if (callback) this.once('timeout', callback);
    this.#restartIdleTimer();
    return this;
  }

  address(): AddressInfo {
    return { port: this.localPort, address: this.localAddress, family: 'IPv4' };
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  resetAndDestroy(): this {
    this.#send('reset');
    return this.destroy();
  }

  /** Handles the kill of its node: the kernel sends the written bytes, and then a reset. */
  #abandon(): void {
    this.#send('reset');
  }

  #send(what: Transmission['what']): void {
    const { machine } = this.node;
    const latencyMs = MIN_LATENCY_MS + machine.chance.number() * (MAX_LATENCY_MS - MIN_LATENCY_MS);
    // Bytes keep their order.
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, machine.nowMs + latencyMs);
    this.#sent.push({ atMs: this.#lastArrivalMs, what });
    this.#transmit();
  }

  /** Schedules the arrival of the first bytes, unless it is scheduled already. */
  #transmit(): void {
    const [first] = this.#sent;
    if (!first || !this.peer || this.connecting || this.#isArrivalScheduled) return;
    if (Buffer.isBuffer(first.what) && !this.peer.#takesMore && !this.peer.node.isDead) return;
    this.#arriveIn(first.atMs - this.node.machine.nowMs);
  }

  #arriveIn(delayMs: number): void {
    this.#isArrivalScheduled = true;
    const { machine } = this.node;
    // Bytes of a killed process still arrive.
    machine.schedule(delayMs, () => this.#arrive(), machine.outside);
  }

  #arrive(): void {
    this.#isArrivalScheduled = false;
    const { peer, node } = this;
    const [first] = this.#sent;
    if (!first || !peer) return;
    if (peer.node.isPaused || network.isCut(node, peer.node)) {
      this.#arriveIn(RETRY_MS);
      return;
    }
    this.#sent.shift();
    if (!peer.node.isDead) {
      const { what } = first;
      node.machine.note(`${this.name} ${Buffer.isBuffer(what) ? `${what.length} ${computeDigest(what)}` : what}`);
      peer.#inContext(() => peer.node.run(() => peer.#receive(what)));
    }
    if (Buffer.isBuffer(first.what)) this.#sentBytes -= first.what.length;
    if (this.#whenRoom && this.#sentBytes < WINDOW_BYTES) {
      const done = this.#whenRoom;
      this.#whenRoom = undefined;
      node.machine.schedule(0, () => this.#inContext(() => node.run(done)), node);
    }
    this.#transmit();
  }

  #receive(what: Transmission['what']): void {
    if (this.destroyed) {
      // The kernel resets a connection whose bytes arrive after the process has closed its socket.
      if (Buffer.isBuffer(what)) this.#send('reset');
      return;
    }
    if (what === 'reset') {
      this.destroy(failure('ECONNRESET', 'read ECONNRESET'));
    } else if (what === 'close') {
      // The other process has closed its socket, and reads nothing more.
      if (this.readableEnded) this.destroy();
      else this.push(null);
    } else if (what === 'end') {
      this.push(null);
    } else {
      this.#restartIdleTimer();
      this.bytesRead += what.length;
      this.#takesMore = this.push(what);
    }
  }

  #restartIdleTimer(): void {
    clearTimeout(this.#idleTimer);
    if (this.#idleMs > 0) this.#idleTimer = this.node.run(() => setTimeout(() => this.emit('timeout'), this.#idleMs));
  }
}

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

const computeDigest = (bytes: Buffer): string => createHash('sha1').update(bytes).digest('hex').slice(0, 8);

/** Connects the current node to a port. */
export function connect(port: number, allowHalfOpen = false): SimulatedSocket {
  const node = here();
  network.connections += 1;
  const id = network.connections;
  const localPort = network.newPort();
  const socket = new SimulatedSocket(`${id}>${port}`, node, localPort, port, allowHalfOpen);
  socket.connecting = true;
  const inContext = AsyncLocalStorage.snapshot();
  const { machine } = node;
  const attempt = (delayMs: number) => machine.schedule(delayMs, establish, node);
  const establish = () => {
    if (socket.destroyed) return;
    const listener = network.listeners.get(port);
    if (listener && (listener.node.isPaused || network.isCut(node, listener.node))) {
      attempt(RETRY_MS);
      return;
    }
    machine.note(`${socket.name} ${listener ? 'connects' : 'is refused'}`);
    if (!listener) {
      inContext(() => socket.destroy(failure('ECONNREFUSED', `connect ECONNREFUSED 127.0.0.1:${port}`)));
      return;
    }
    listener.inContext(() =>
      listener.node.run(() => {
        const { server } = listener;
        const { allowHalfOpen: mayBeHalfOpen = false } = server as { readonly allowHalfOpen?: boolean };
        const accepted = new SimulatedSocket(`${id}<${port}`, listener.node, port, localPort, mayBeHalfOpen);
        accepted.connected(socket);
        socket.connected(accepted);
        acceptedBy.get(server)?.add(accepted);
        accepted.once('close', () => acceptedBy.get(server)?.delete(accepted));
        server.emit('connection', accepted);
      }),
    );
    inContext(() => {
      socket.emit('connect');
      socket.emit('ready');
    });
  };
  attempt(MIN_LATENCY_MS + machine.chance.number());
  return socket;
}

type Connect = typeof net.connect;

/** Replaces Node's TCP, which `node:http` and `node:http2` look up at each call. */
export function replaceNetwork(): void {
  const replaced = ((...values: unknown[]) => {
    const [first] = values;
    const { port, allowHalfOpen } = (typeof first === 'object' ? first : { port: first }) as net.TcpNetConnectOpts;
    const socket = connect(Number(port), allowHalfOpen);
    const callback = values.find((value) => typeof value === 'function') as (() => void) | undefined;
    if (callback) socket.once('connect', callback);
    return socket;
  }) as unknown as Connect;
  Object.assign(net, { connect: replaced, createConnection: replaced });
  replaceListening();
  replacePeerNames();
  replaceFetch();
}

/** Gives `fetch` a connection pool for each node: a node's connections end with it, and others cannot use them. */
function replaceFetch(): void {
  // Node sets the dispatcher when it loads the parts of `fetch`.
  void Response;
  const { constructor: Agent } = (globalThis as unknown as Record<symbol, { constructor: new () => object }>)[
    Symbol.for('undici.globalDispatcher.2')
  ] as { constructor: new () => object };
  const pools = new WeakMap<object, object>();
  const { fetch } = globalThis;
  globalThis.fetch = (input, init) => {
    const node = here();
    const dispatcher = pools.get(node) ?? new Agent();
    pools.set(node, dispatcher);
    return fetch(input, { dispatcher, ...init } as RequestInit);
  };
}

/** The open connections of servers. */
const acceptedBy = new WeakMap<net.Server, Set<SimulatedSocket>>();

/** The ports of listening servers. */
const listening = new WeakMap<net.Server, { readonly port: number; readonly stop: () => void }>();

function replaceListening(): void {
  const server = net.Server.prototype;
  server.listen = function listen(this: net.Server, ...values: unknown[]) {
    const [first] = values;
    const wanted = Number(typeof first === 'object' ? (first as net.ListenOptions).port : first);
    const port = wanted === 0 ? network.newPort() : wanted;
    const callback = values.find((value) => typeof value === 'function') as (() => void) | undefined;
    if (callback) this.once('listening', callback);
    const node = here();
    if (network.listeners.has(port)) {
      setImmediate(() =>
        this.emit('error', failure('EADDRINUSE', `listen EADDRINUSE: address already in use ${port}`)),
      );
      return this;
    }
    const { listeners } = network;
    const listener: Listener = {
      server: this,
      node,
      inContext: AsyncLocalStorage.snapshot(),
      release: () => listeners.get(port) === listener && listeners.delete(port),
    };
    listeners.set(port, listener);
    acceptedBy.set(this, new Set());
    node.resources.add(listener);
    listening.set(this, { port, stop: listener.release });
    // Node takes the date from its own clock.
    this.prependListener('request', (_: unknown, response: ServerResponse) => {
      response.sendDate = false;
    });
    this.prependListener('stream', (stream: ServerHttp2Stream) => {
      const { respond } = stream;
      stream.respond = (headers, options) =>
        respond.call(stream, { date: new Date().toUTCString(), ...headers }, options);
    });
    setImmediate(() => {
      this.emit('listening');
      stopRealChecks(this as HttpServer);
    });
    return this;
  } as typeof server.listen;
  server.address = function address(this: net.Server) {
    const { port } = listening.get(this) ?? {};
    return port === undefined ? null : { port, address: '127.0.0.1', family: 'IPv4' };
  };
  server.close = function close(this: net.Server, callback?: (error?: Error) => void) {
    listening.get(this)?.stop();
    listening.delete(this);
    if (callback) this.once('close', callback);
    const left = [...(acceptedBy.get(this) ?? [])];
    const ended = left.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    Promise.all(ended).then(() => setImmediate(() => this.emit('close')));
    return this;
  };
  Object.defineProperty(server, 'listening', {
    get(this: net.Server) {
      return listening.has(this);
    },
  });
}

/** Stops Node's check of late requests, which uses its own timer and clock. */
function stopRealChecks(server: HttpServer): void {
  for (const symbol of Object.getOwnPropertySymbols(server)) {
    if (symbol.description !== 'http.server.connectionsCheckingInterval') continue;
    const timer: { close?(): void } | undefined = Reflect.get(server, symbol);
    timer?.close?.();
  }
}

/** Replaces the addresses that HTTP/2 reads: it wraps a foreign socket, and asks the wrapper. */
function replacePeerNames(): void {
  const socket = net.Socket.prototype as unknown as Record<'_getpeername' | '_getsockname', () => object>;
  const ends = {
    _getpeername: (stream: SimulatedSocket) => ({
      port: stream.remotePort,
      address: stream.remoteAddress,
      family: stream.remoteFamily,
    }),
    _getsockname: (stream: SimulatedSocket) => stream.address(),
  } as const;
  for (const name of ['_getpeername', '_getsockname'] as const) {
    const real = socket[name];
    socket[name] = function readAddress(this: { stream?: unknown }) {
      return this.stream instanceof SimulatedSocket ? ends[name](this.stream) : real.call(this);
    };
  }
}
