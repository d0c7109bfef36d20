import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { generate } from 'selfsigned';
import { makeAnswer } from './answers.ts';
import type { Attempt, Breakage } from './conversation.ts';

/** The fatal alert of a server that has no protocol or cipher in common with the client. */
const HANDSHAKE_FAILURE = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28]);

/** An attempt that arrived. */
export interface Arrival {
  /** The script for it; undefined when no further attempt was expected. */
  readonly attempt: Attempt | undefined;
  readonly arrivedAtMs: number;
  /**
   * When the server completed its part. Undefined when the client has to end the attempt, and when only a connection
   * arrived: HTTP libraries open another one on their own as long as nothing was sent.
   */
  doneAtMs?: number;
  /** The request; undefined when nothing was read. */
  request?: IncomingMessage;
  /** Undefined when the body was not read, or did not arrive completely. */
  body?: Buffer;
}

/** Plays the script of a call to a client, on a separate port, and records what arrives. */
export class ScriptedServer {
  readonly #server: Server;
  #untrusted: Server | undefined;
  readonly #setClock: (aheadSeconds: number) => void;
  readonly #sockets = new Set<Socket>();
  #attempts: Attempt[] = [];
  #arrivals: Arrival[] = [];

  /** @param setClock sets the clock of the client's machine */
  constructor(setClock: (aheadSeconds: number) => void) {
    this.#setClock = setClock;
    // The script decides how long a connection lives.
    this.#server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 });
    this.#serve(this.#server);
  }

  async start(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  /** Serves TLS as well, with a certificate that no client trusts. */
  async startUntrusted(): Promise<void> {
    const { cert, private: key } = await generate([{ name: 'commonName', value: '127.0.0.1' }], { keyType: 'ec' });
    this.#untrusted = createTlsServer({ cert, key });
    this.#serve(this.#untrusted);
    await once(this.#untrusted.listen(0, '127.0.0.1'), 'listening');
  }

  get port(): number {
    return findPort(this.#server);
  }

  get untrustedPort(): number {
    return this.#untrusted ? findPort(this.#untrusted) : 0;
  }

  /** Begins a call. Arrivals are appended to the returned list. */
  play(attempts: readonly Attempt[]): readonly Arrival[] {
    this.#attempts = [...attempts];
    this.#arrivals = [];
    return this.#arrivals;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of [this.#server, ...(this.#untrusted ? [this.#untrusted] : [])]) {
      server.close();
      await once(server, 'close');
    }
  }

  #serve(server: Server): void {
    server.on('connection', (socket) => this.#accept(socket));
    server.on('request', (request) => void this.#receive(request));
    // Servers respond so when a client begins TLS on a port for HTTP.
    server.on('clientError', (_, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n'));
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket.on('close', () => this.#sockets.delete(socket)).on('error', () => {}));
    const breakage = this.#attempts[0]?.connection;
    if (breakage === 'tls-refused') socket.end(HANDSHAKE_FAILURE);
    if (breakage === 'tls-closed') socket.end();
    if (breakage?.endsWith('at-accept')) breakDown(this.#arrive(), socket, breakage);
  }

  async #receive(request: IncomingMessage): Promise<void> {
    const { socket } = request;
    const arrival = this.#arrive();
    const { attempt } = arrival;
    arrival.request = request;
    if (attempt?.connection !== 'closed-before-body') {
      const body = await buffer(request).catch(() => undefined);
      // The client has disconnected, so it expects no response.
      if (!body) return;
      arrival.body = body;
    }
    if (attempt?.clockJumpsSeconds) this.#setClock(attempt.clockJumpsSeconds);
    if (attempt?.connection) breakDown(arrival, socket, attempt.connection);
    else await answer(arrival, socket, attempt);
  }

  #arrive(): Arrival {
    const [attempt] = this.#attempts;
    if (!attempt?.again) this.#attempts.shift();
    const arrival: Arrival = { attempt, arrivedAtMs: performance.now() };
    this.#arrivals.push(arrival);
    return arrival;
  }
}

const findPort = (server: Server): number => (server.address() as AddressInfo).port;

function breakDown(arrival: Arrival, socket: Socket, breakage: Breakage): void {
  if (breakage === 'silent') return;
  if (arrival.request) arrival.doneAtMs = performance.now();
  if (breakage.startsWith('reset')) socket.resetAndDestroy();
  else socket.end();
}

/** Sends the response, up to its cut. An unexpected attempt gets no response: its connection is closed. */
async function answer(arrival: Arrival, socket: Socket, attempt: Attempt = {}): Promise<void> {
  const bytes = makeAnswer(attempt, arrival.request)?.bytes ?? Buffer.alloc(0);
  const { cutAfterBytes: cut = bytes.length, atCut = 'close', byteEveryMs, keepsConnection } = attempt;
  if (typeof cut === 'string') throw new Error('this conversation needs one variant for every byte: see makeVariants');
  let rest = bytes.subarray(0, cut);
  const end = rest.length < bytes.length ? atCut : 'close';
  for (; byteEveryMs && rest.length > 1; rest = rest.subarray(1)) {
    if (socket.destroyed) return;
    socket.write(rest.subarray(0, 1));
    await sleep(byteEveryMs);
  }
  // Set before the last write: a client may retry on the last byte, before the write is confirmed here.
  if (end !== 'silence') arrival.doneAtMs = performance.now();
  await new Promise((resolve) => socket.write(rest, resolve));
  if (end === 'reset') socket.resetAndDestroy();
  if (end === 'close' && !keepsConnection) socket.end();
}
