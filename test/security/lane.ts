import { connect, type Socket } from 'node:net';
import { isHead, type RawAnswer, takeAnswer, takeAnswers } from '../support/raw-http.ts';
import type { HostileRequest } from './hostile-requests.ts';

/** How long an answer, or the end of a connection, may take at most; milliseconds. Ten times what the service promises. */
const GIVES_UP_AFTER_MS = 60_000;

/** How long whoever sent something doubtful waits for an answer before hanging up; milliseconds. */
const PATIENCE_MS = 1000;

/** What came of a request. */
export interface Exchange {
  readonly answers: readonly RawAnswer[];
  /** What is no whole answer. */
  readonly rest: Buffer;
  /** Neither an answer nor an end came. */
  readonly hangs: boolean;
  /** What went over the same connection just before. */
  readonly before?: HostileRequest | undefined;
}

/** Sends one request after the other: those of which nobody doubts where they end on one connection, others on their own. */
export class Lane {
  readonly #host: string;
  readonly #port: number;
  #kept: Socket | undefined;
  /** What went before over the connection that is kept. */
  #before: HostileRequest | undefined;

  constructor(baseUrl: string) {
    const { hostname, port } = new URL(baseUrl);
    this.#host = hostname;
    this.#port = Number(port);
  }

  async send(request: HostileRequest): Promise<Exchange> {
    if (request.framing !== 'whole') return this.#sendAlone(request);
    this.#kept ??= await this.#connect();
    const socket = this.#kept;
    const exchange = { ...(await converse(socket, request)), before: this.#before };
    this.#before = request;
    if (socket.readyState !== 'open' || exchange.answers[0]?.headers.connection !== 'keep-alive') this.close();
    return exchange;
  }

  close(): void {
    this.#kept?.destroy();
    this.#kept = undefined;
    this.#before = undefined;
  }

  async #sendAlone(request: HostileRequest): Promise<Exchange> {
    const socket = await this.#connect();
    const exchange = await converse(socket, request);
    socket.destroy();
    return exchange;
  }

  #connect(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: this.#host, port: this.#port, allowHalfOpen: true, noDelay: true }, () => {
        socket.off('error', reject);
        // Whoever is refused before all was sent sees the connection reset.
        socket.on('error', () => {});
        resolve(socket);
      });
      socket.once('error', reject);
    });
  }
}

/** Sends a request and reads what comes: to its answer when it is whole, else until the server closes the connection. */
function converse(socket: Socket, { bytes, framing }: HostileRequest): Promise<Exchange> {
  return new Promise((resolve) => {
    const hasNoBody = isHead(bytes);
    let received: Buffer = Buffer.alloc(0);
    let patience: NodeJS.Timeout | undefined;

    const finish = (hangs: boolean) => {
      clearTimeout(patience);
      clearTimeout(limit);
      socket.removeAllListeners('data').removeAllListeners('end').removeAllListeners('close');
      resolve({ ...takeAnswers(received), hangs });
    };
    const limit = setTimeout(() => finish(true), GIVES_UP_AFTER_MS);
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const first = takeAnswer(received, hasNoBody)?.answer;
      if (!first) return;
      if (framing !== 'whole') socket.end();
      // Whoever could not read the request did not know that its answer has no body.
      else if (!hasNoBody || first.headers.connection === 'keep-alive') finish(false);
    });
    socket.on('end', () => {
      socket.end();
      finish(false);
    });
    socket.on('close', () => finish(false));
    socket.write(bytes);
    if (framing === 'cut') socket.end();
    if (framing === 'unknown') patience = setTimeout(() => socket.end(), PATIENCE_MS);
  });
}
