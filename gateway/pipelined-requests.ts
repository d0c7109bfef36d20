import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as turnOver } from 'node:timers/promises';
import { REQUEST_ARRIVAL_MS } from '../common/deadlines.ts';

/**
 * From how many requests on that wait for the one before them, or from how many bytes of their bodies, nothing more is read
 * of a connection. Node can only be told after it has passed on what it reads at a time: 64 KB, 3,640 of the smallest requests.
 */
export const HELD_BACK_FROM = 32;
export const HELD_BACK_FROM_BYTES = 64 * 1024;

/** How many may wait on all connections. Each takes up to 4 KB, and its body. */
export const MAX_WAITING = 20_000;

/**
 * Carries out the requests of a connection one after the other, as they came, and none behind the answer that closes it
 * (RFC 9112, section 9.6): nobody would learn what became of it. A client may send the next before it has the answer to the
 * one before; while too many wait, nothing more is read of its connection.
 */
export class RequestOrder {
  /** How long a request may take to arrive; milliseconds. */
  readonly arrivalMs: number;
  readonly #connections = new WeakMap<Socket, PipelineQueue>();
  readonly #waiting = { count: 0 };

  constructor(arrivalMs = REQUEST_ARRIVAL_MS) {
    this.arrivalMs = arrivalMs;
  }

  /** Has a request carried out in its turn: at once, unless another of its connection is under way. */
  carryOutInTurn(request: IncomingMessage, response: ServerResponse, carryOut: RequestListener): void {
    const { socket } = request;
    let turns = this.#connections.get(socket);
    if (!turns) {
      turns = new PipelineQueue(socket, this.#waiting, this.arrivalMs);
      this.#connections.set(socket, turns);
    }
    turns.take(request, response, carryOut);
  }

  /**
   * Excuses a request that is late because its connection is not read on: its time begins anew when it is.
   *
   * @param onLate is called when it is late then, too
   */
  isExcused(socket: Socket, onLate: () => void): boolean {
    return this.#connections.get(socket)?.excuse(onLate) ?? false;
  }

  /**
   * Waits until everything that came whole before what is being read has its answer: another in its place would tell a
   * caller the wrong thing of a request that is carried out. Whatever comes behind is not looked at.
   *
   * @returns whether what is being read may still be answered; it may not be answered twice
   */
  async mayAnswerUnreadable(socket: Socket): Promise<boolean> {
    // What was read of it may be enough to refuse it, which then happens now.
    await turnOver();
    const isAnswerable = (await this.#connections.get(socket)?.endWithUnreadable()) ?? true;
    return socket.writable && isAnswerable;
  }
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly carryOut: RequestListener;
}

/** Whose turn it is on one connection. A request that meets no other costs a listener, and nothing else. */
class PipelineQueue {
  readonly #socket: Socket;
  /** How many wait on all connections. */
  readonly #allWaiting: { count: number };
  readonly #arrivalMs: number;
  readonly #waiting: Waiting[] = [];
  #underWay: ServerResponse | undefined;
  /** A request that had its answer before all of it had come. */
  #answeredEarly: IncomingMessage | undefined;
  /** Whether no further request is taken on: there was no room for one, or what came cannot be read. */
  #isFull = false;
  #isUnreadable = false;
  #onIdle: (() => void) | undefined;
  #isHeldBack = false;
  /** How long the bodies are of those that came since the last one that did not wait; bytes. */
  #bodyBytes = 0;
  #latest: IncomingMessage | undefined;
  #onLate: (() => void) | undefined;

  constructor(socket: Socket, allWaiting: { count: number }, arrivalMs: number) {
    this.#socket = socket;
    this.#allWaiting = allWaiting;
    this.#arrivalMs = arrivalMs;
  }

  take(request: IncomingMessage, response: ServerResponse, carryOut: RequestListener): void {
    if (this.#isFull || this.#isUnreadable) return;
    this.#latest = request;
    if (!this.#underWay) {
      this.#underWay = response;
      this.#carryOut({ request, response, carryOut });
    } else if (this.#allWaiting.count < MAX_WAITING) {
      this.#allWaiting.count += 1;
      this.#waiting.push({ request, response, carryOut });
      this.#bodyBytes += bodyBytesOf(request);
      const isMuch = this.#waiting.length >= HELD_BACK_FROM || this.#bodyBytes >= HELD_BACK_FROM_BYTES;
      if (isMuch && !this.#isHeldBack) this.#holdBack();
    } else {
      // The connection ends with what it has.
      this.#isFull = true;
    }
  }

  excuse(onLate: () => void): boolean {
    if (this.#isHeldBack) this.#onLate = onLate;
    return this.#isHeldBack;
  }

  /** @returns whether what cannot be read is to be answered */
  async endWithUnreadable(): Promise<boolean> {
    this.#isUnreadable = true;
    // The rest of what is being read will never come.
    if (this.#waiting.at(-1)?.request.complete === false) this.#drop(1);
    if (this.#underWay?.req.complete) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    const early = this.#underWay?.headersSent ? this.#underWay.req : this.#answeredEarly;
    return !this.#isFull && early?.complete !== false;
  }

  #carryOut({ request, response, carryOut }: Waiting): void {
    this.#answeredEarly = undefined;
    response.on('close', this.#answered);
    // No other protocol is spoken here, and Node may hand what comes behind the wish for one to nobody.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    carryOut(request, response);
  }

  readonly #answered = (): void => {
    if (this.#underWay?.req.complete === false) this.#answeredEarly = this.#underWay.req;
    const next = this.#waiting.shift();
    this.#underWay = next?.response;
    if (!next) {
      this.#end();
      return;
    }
    this.#allWaiting.count -= 1;
    // A connection full of requests is one caller among many: the others come first.
    setImmediate(() => {
      if (this.#waiting.length === 0) this.#readOn();
      if (this.#socket.writable) this.#carryOut(next);
      else this.#giveUp();
    });
  };

  /** The connection is closed, or ends with the answer before. */
  #giveUp(): void {
    this.#drop(this.#waiting.length);
    this.#underWay = undefined;
    this.#end();
  }

  #end(): void {
    this.#onIdle?.();
    if (this.#isFull) this.#socket.destroySoon();
  }

  #drop(count: number): void {
    this.#allWaiting.count -= count;
    this.#waiting.length -= count;
  }

  #holdBack(): void {
    this.#isHeldBack = true;
    this.#socket.on('resume', this.#stay);
    this.#socket.pause();
  }

  #readOn(): void {
    this.#bodyBytes = 0;
    if (!this.#isHeldBack) return;
    this.#isHeldBack = false;
    this.#socket.off('resume', this.#stay);
    this.#socket.resume();
    if (this.#onLate) this.#giveTime(this.#onLate);
    this.#onLate = undefined;
  }

  /** Node looks at the time of a request once. */
  #giveTime(onLate: () => void): void {
    const before = this.#latest;
    const isNextLate = before?.complete;
    setTimeout(() => {
      if (this.#latest === before ? isNextLate || !before?.complete : !this.#latest?.complete) onLate();
    }, this.#arrivalMs).unref();
  }

  /** Node resumes by itself at the end of each request. */
  readonly #stay = (): void => {
    this.#socket.pause();
  };
}

/** How long a request says its body is; in chunks, as long as one may be. Bytes. */
function bodyBytesOf({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : HELD_BACK_FROM_BYTES;
}
