import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { REQUEST_ARRIVAL_MS } from '../common/deadlines.ts';

/**
 * The number of queued requests, and of bytes of their bodies, from which a connection is paused. Node applies a pause
 * only after it has passed on one read: 64 KB, 3,640 of the smallest requests.
 */
export const PAUSE_AT_REQUESTS = 32;
export const PAUSE_AT_BYTES = 64 * 1024;

/** The maximum number of queued requests of all connections. Each holds up to 4 KB and its body. */
export const MAX_QUEUED_REQUESTS = 20_000;

/**
 * Handles the requests of a connection one at a time, in order, and none after the response that closes it (RFC 9112,
 * section 9.6): the client could not receive its outcome. A client may send requests before it has the response to the
 * previous one; while too many are queued, its connection is not read.
 */
export class PipelinedRequests {
  /** The timeout for a request to arrive; milliseconds. */
  readonly arrivalMs: number;
  readonly #connections = new WeakMap<Socket, PipelineQueue>();
  readonly #queued = { count: 0 };

  constructor(arrivalMs = REQUEST_ARRIVAL_MS) {
    this.arrivalMs = arrivalMs;
  }

  /** Calls the handler immediately, or once the earlier requests of the connection have their responses. */
  handleInOrder(request: IncomingMessage, response: ServerResponse, handler: RequestListener): void {
    const { socket } = request;
    let queue = this.#connections.get(socket);
    if (!queue) {
      queue = new PipelineQueue(socket, this.#queued, this.arrivalMs);
      this.#connections.set(socket, queue);
    }
    queue.add(request, response, handler);
  }

  /**
   * Gives a late request another timeout, from when its connection is read again, if the connection is paused.
   *
   * @param onLate called when the request is late again
   * @returns whether the connection is paused
   */
  extendTimeoutIfPaused(socket: Socket, onLate: () => void): boolean {
    return this.#connections.get(socket)?.extendTimeoutIfPaused(onLate) ?? false;
  }

  /** Returns the request whose head was received last, if its body is still arriving. */
  arriving(socket: Socket): IncomingMessage | undefined {
    return this.#connections.get(socket)?.arriving();
  }

  /**
   * Waits until every complete request before a malformed one has its response: its response must not arrive as that of
   * an earlier one which is being handled. Input after the malformed request is ignored.
   *
   * @returns whether the malformed request may be answered; it must not be answered twice
   */
  async canAnswerMalformed(socket: Socket): Promise<boolean> {
    // The part that was read may be enough for the handler to refuse the request, which then happens in this turn.
    await nextTurn();
    const isAnswerable = (await this.#connections.get(socket)?.endWithMalformed()) ?? true;
    return socket.writable && isAnswerable;
  }
}

interface QueuedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly handler: RequestListener;
}

/** The requests of one connection. A request that is not pipelined costs one listener. */
class PipelineQueue {
  readonly #socket: Socket;
  /** The number of queued requests of all connections. */
  readonly #allQueued: { count: number };
  readonly #arrivalMs: number;
  readonly #queue: QueuedRequest[] = [];
  /** The response to the request that is being handled. */
  #current: ServerResponse | undefined;
  /** A request whose response was complete before the request had arrived whole. */
  #answeredEarly: IncomingMessage | undefined;
  /** Either of them ends intake: there was no room for a request, or one was malformed. */
  #isFull = false;
  #isMalformed = false;
  #onIdle: (() => void) | undefined;
  #isPaused = false;
  /** The length of the bodies of the requests since the last one that did not queue; bytes. */
  #bodyBytes = 0;
  #lastReceived: IncomingMessage | undefined;
  #onLate: (() => void) | undefined;

  constructor(socket: Socket, allQueued: { count: number }, arrivalMs: number) {
    this.#socket = socket;
    this.#allQueued = allQueued;
    this.#arrivalMs = arrivalMs;
  }

  add(request: IncomingMessage, response: ServerResponse, handler: RequestListener): void {
    if (this.#isFull || this.#isMalformed) return;
    this.#lastReceived = request;
    if (!this.#current) {
      this.#current = response;
      this.#handle({ request, response, handler });
    } else if (this.#allQueued.count < MAX_QUEUED_REQUESTS) {
      this.#allQueued.count += 1;
      this.#queue.push({ request, response, handler });
      this.#bodyBytes += bodyBytesOf(request);
      const isPauseDue = this.#queue.length >= PAUSE_AT_REQUESTS || this.#bodyBytes >= PAUSE_AT_BYTES;
      if (isPauseDue && !this.#isPaused) this.#pause();
    } else {
      // The connection closes after the requests that it has.
      this.#isFull = true;
    }
  }

  extendTimeoutIfPaused(onLate: () => void): boolean {
    if (this.#isPaused) this.#onLate = onLate;
    return this.#isPaused;
  }

  arriving(): IncomingMessage | undefined {
    return this.#lastReceived?.complete === false ? this.#lastReceived : undefined;
  }

  /** @returns whether the malformed request is to be answered */
  async endWithMalformed(): Promise<boolean> {
    this.#isMalformed = true;
    // The rest of a request that is still arriving will never come.
    if (this.#queue.at(-1)?.request.complete === false) this.#dropLast(1);
    if (this.#current?.req.complete) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    const early = this.#current?.headersSent ? this.#current.req : this.#answeredEarly;
    return !this.#isFull && early?.complete !== false;
  }

  #handle({ request, response, handler }: QueuedRequest): void {
    this.#answeredEarly = undefined;
    response.on('close', this.#onResponseClosed);
    // No upgrade is supported, and Node may pass what follows a request for one to no listener.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    handler(request, response);
  }

  readonly #onResponseClosed = (): void => {
    if (this.#current?.req.complete === false) this.#answeredEarly = this.#current.req;
    const next = this.#queue.shift();
    this.#current = next?.response;
    if (!next) {
      this.#onQueueEmpty();
      return;
    }
    this.#allQueued.count -= 1;
    // In another turn, so that one connection full of requests does not delay the others.
    setImmediate(() => {
      if (this.#queue.length === 0) this.#resume();
      if (this.#socket.writable) this.#handle(next);
      else this.#dropAll();
    });
  };

  /** The connection is closed, or closes with the previous response. */
  #dropAll(): void {
    this.#dropLast(this.#queue.length);
    this.#current = undefined;
    this.#onQueueEmpty();
  }

  #onQueueEmpty(): void {
    this.#onIdle?.();
    if (this.#isFull) this.#socket.destroySoon();
  }

  #dropLast(count: number): void {
    this.#allQueued.count -= count;
    this.#queue.length -= count;
  }

  #pause(): void {
    this.#isPaused = true;
    this.#socket.on('resume', this.#pauseAgain);
    this.#socket.pause();
  }

  #resume(): void {
    this.#bodyBytes = 0;
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.off('resume', this.#pauseAgain);
    this.#socket.resume();
    if (this.#onLate) this.#startTimeout(this.#onLate);
    this.#onLate = undefined;
  }

  /** Replaces Node's request timeout, which fires only once per request. */
  #startTimeout(onLate: () => void): void {
    const last = this.#lastReceived;
    const wasComplete = last?.complete;
    setTimeout(() => {
      if (this.#lastReceived === last ? wasComplete || !last?.complete : !this.#lastReceived?.complete) onLate();
    }, this.#arrivalMs).unref();
  }

  /** Node resumes the socket at the end of each request. */
  readonly #pauseAgain = (): void => {
    this.#socket.pause();
  };
}

/** Returns the declared length of a body; of a chunked one, the length from which a connection is paused. Bytes. */
function bodyBytesOf({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : PAUSE_AT_BYTES;
}
