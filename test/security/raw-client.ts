import { connect, type Socket } from 'node:net';
import { isHead, type RawAnswer, takeAnswer, takeAnswers } from '../support/raw-http.ts';
import type { HostileRequest } from './hostile-requests.ts';

/** The timeout of a response or of the end of a connection, ten times what the service promises; milliseconds. */
const TIMEOUT_MS = 60_000;

/** How long a client that sent an ambiguous request waits for a response before it closes the connection; milliseconds. */
const AMBIGUOUS_WAIT_MS = 1000;

/** The outcome of a request. */
export interface Exchange {
  readonly answers: readonly RawAnswer[];
  /** Bytes that are not a complete response. */
  readonly rest: Buffer;
  /** Whether neither a response nor the end of the connection arrived. */
  readonly hangs: boolean;
  /** The previous request on the same connection. */
  readonly before?: HostileRequest | undefined;
}

/** Sends requests one after the other; unambiguous ones share a connection, and each of the others has its own. */
export class RawClient {
  readonly #host: string;
  readonly #port: number;
  #shared: Socket | undefined;
  /** The previous request on the shared connection. */
  #before: HostileRequest | undefined;

  constructor(baseUrl: string) {
    const { hostname, port } = new URL(baseUrl);
    this.#host = hostname;
    this.#port = Number(port);
  }

  async send(request: HostileRequest): Promise<Exchange> {
    if (request.framing !== 'whole') return this.#sendAlone(request);
    this.#shared ??= await this.#connect();
    const socket = this.#shared;
    const exchange = { ...(await exchangeOn(socket, request)), before: this.#before };
    this.#before = request;
    const isKept = exchange.answers[0]?.headers.connection === 'keep-alive' && !request.isLong;
    // The connection ends after a body that is too long, but the response to its head may be too early to announce that.
    if (socket.readyState !== 'open' || !isKept) this.close();
    return exchange;
  }

  close(): void {
    this.#shared?.destroy();
    this.#shared = undefined;
    this.#before = undefined;
  }

  async #sendAlone(request: HostileRequest): Promise<Exchange> {
    const socket = await this.#connect();
    const exchange = await exchangeOn(socket, request);
    socket.destroy();
    return exchange;
  }

  #connect(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: this.#host, port: this.#port, allowHalfOpen: true, noDelay: true }, () => {
        socket.off('error', reject);
        // A client that is refused before it has sent everything sees a connection reset.
        socket.on('error', () => {});
        resolve(socket);
      });
      socket.once('error', reject);
    });
  }
}

/** Sends a request and reads one response if the request is whole, else all until the server closes the connection. */
function exchangeOn(socket: Socket, { bytes, framing }: HostileRequest): Promise<Exchange> {
  return new Promise((resolve) => {
    const hasNoBody = isHead(bytes);
    let received: Buffer = Buffer.alloc(0);
    let wait: NodeJS.Timeout | undefined;

    const finish = (hangs: boolean) => {
      clearTimeout(wait);
      clearTimeout(limit);
      socket.removeAllListeners('data').removeAllListeners('end').removeAllListeners('close');
      resolve({ ...takeAnswers(received), hangs });
    };
    const limit = setTimeout(() => finish(true), TIMEOUT_MS);
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const first = takeAnswer(received, hasNoBody)?.answer;
      if (!first) return;
      if (framing !== 'whole') socket.end();
      // A server that could not read the request did not know that its response has no body.
      else if (!hasNoBody || first.headers.connection === 'keep-alive') finish(false);
    });
    socket.on('end', () => {
      socket.end();
      finish(false);
    });
    socket.on('close', () => finish(false));
    socket.write(bytes);
    if (framing === 'cut') socket.end();
    if (framing === 'unknown') wait = setTimeout(() => socket.end(), AMBIGUOUS_WAIT_MS);
  });
}
