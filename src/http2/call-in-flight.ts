import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2';
import type { Writable } from 'node:stream';
import { REQUEST_ARRIVAL_MS } from '../../common/deadlines.ts';
import type { Caller } from '../domain/caller.ts';

/** A request and its response, over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/**
 * The number of successive checks without progress after which a response is destroyed. Counted, not timed: after a
 * suspension of this process, one check has passed, and not the time of all callers.
 */
export const MAX_STALLED_CHECKS = 30;

/** Larger writes are split into chunks of this size, so that partial progress is visible; bytes. */
const CHUNK_BYTES = 16 * 1024;

/** Returns the HTTP/2 stream of a call; undefined for HTTP/1.1. */
export const streamOf = (raw: Request | Response): ServerHttp2Stream | undefined =>
  (raw as { stream?: ServerHttp2Stream }).stream;

/** What the port has to know of a method. */
export interface CallTraits {
  /** Whether it is open to unauthenticated callers: probes carry no secrets. */
  readonly isProbe: boolean;
  /** Whether it lasts as long as its connection without doing anything. */
  readonly isWatch: boolean;
  /** Whether its caller may send for any time. */
  readonly isOpenEnded: boolean;
}

/** A call from its arrival until its response is sent completely. */
export class CallInFlight {
  /** The stream that buffers the response until it is sent. */
  readonly to: Writable;
  readonly isWatch: boolean;
  /** The number of successive checks without progress. */
  stalledChecks = 0;
  /** The amount written so far, and the amount that the peer had taken at the last check; bytes. */
  #written = 0;
  #taken = 0;
  #isFinished = false;
  readonly #stream: ServerHttp2Stream | undefined;
  readonly #arrivesBy: number;
  readonly #caller: Caller | undefined;

  constructor(response: Response, caller: Caller | undefined, { isWatch, isOpenEnded }: CallTraits) {
    this.#caller = caller;
    this.#stream = streamOf(response);
    this.to = this.#stream ?? (response as ServerResponse);
    this.isWatch = isWatch;
    // What is not read of a request counts as memory of the connection, even once its stream is destroyed.
    this.#stream?.once('finish', () => this.#stream?.removeAllListeners('data').resume());
    this.#arrivesBy = isOpenEnded ? Number.POSITIVE_INFINITY : performance.now() + REQUEST_ARRIVAL_MS;
  }

  /** The data that its peer has not taken; bytes. */
  get unsentBytes(): number {
    return this.to.writableLength;
  }

  /** Whether its caller has lost its access, and reads nothing of what was written before. */
  get isWithdrawn(): boolean {
    return this.#caller?.withdrawn.aborted === true && this.stalledChecks > 0;
  }

  /** Measures the response as it is written. @param onWritten called with the number of bytes of each write */
  measure(response: Response, onWritten: (bytes: number) => void): void {
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    response.write = (chunk: Uint8Array, ...rest: unknown[]) => {
      let at = 0;
      for (; at + CHUNK_BYTES < chunk.length; at += CHUNK_BYTES) write(chunk.subarray(at, at + CHUNK_BYTES));
      const isBelowHighWaterMark = write(chunk.subarray(at), ...rest);
      this.#written += chunk.length;
      onWritten(chunk.length);
      return isBelowHighWaterMark;
    };
  }

  /** Whether its caller has read nothing of an unsent response for too many checks. Called at each check. */
  isStalled(): boolean {
    // Comparing unsent amounts instead would misjudge streams, which write the next message when one is taken.
    const taken = this.#written - this.unsentBytes;
    this.stalledChecks = this.unsentBytes > 0 && taken <= this.#taken ? this.stalledChecks + 1 : 0;
    this.#taken = taken;
    return this.stalledChecks > MAX_STALLED_CHECKS;
  }

  /**
   * Whether its request has not ended in time, or not within a check after its response: a message that is too large is
   * answered before it was read to its end. Called at each check. Of HTTP/1.1, Node bounds the arrival.
   */
  isUnfinished(now: number): boolean {
    if (!this.#stream || this.#stream.readableEnded) return false;
    // Not at once: the response's trailers are still being sent.
    const wasFinished = this.#isFinished;
    this.#isFinished = this.#stream.writableFinished;
    return wasFinished || now > this.#arrivesBy;
  }
}
