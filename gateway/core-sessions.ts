import { type ClientHttp2Stream, constants } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { Http2SessionManager } from '@connectrpc/connect-node';
import { CORE_CONNECT_MS } from '../common/deadlines.ts';

/**
 * The connections to a core, made anew when the core closes one.
 *
 * A core that stops says so first. Where no call is under way connect-node then ends the connection with an error, and listens for
 * that no more once the next call comes: it would end the process (connectrpc/connect-es#1768).
 *
 * When a connection gives no sign of life, connect-node may begin two others at once, and forget who waits for the first: that
 * call would wait for ever, and all requests that are to travel over it. So it is given up in time, and begun again.
 */
export class CoreSessions extends Http2SessionManager {
  readonly #connectMs: number;

  /** @param connectMs how long a call may wait for a connection; milliseconds */
  constructor(
    url: string,
    pings?: ConstructorParameters<typeof Http2SessionManager>[1],
    tls?: ConstructorParameters<typeof Http2SessionManager>[2],
    connectMs: number = CORE_CONNECT_MS,
  ) {
    super(url, pings, tls);
    this.#connectMs = connectMs;
  }

  /** @throws ConnectError with `unavailable` where there is no connection in time */
  override async request(...call: Parameters<Http2SessionManager['request']>): Promise<ClientHttp2Stream> {
    const stream = await this.#inTime(super.request(...call));
    const { session } = stream;
    if (session && !session.listeners('error').includes(told)) session.on('error', told);
    return stream;
  }

  #inTime(asked: Promise<ClientHttp2Stream>): Promise<ClientHttp2Stream> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new ConnectError(`no connection within ${this.#connectMs} ms`, Code.Unavailable));
        // Nobody wants it any more.
        asked.then((stream) => stream.on('error', told).close(constants.NGHTTP2_CANCEL), told);
      }, this.#connectMs);
      asked.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

/**
 * Whether a call failed that no core has looked at, and which may be made again, whatever it was: it came as its connection was
 * to be left. In HTTP/2 a refused stream says so.
 */
export function isUnseen(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message.endsWith('NGHTTP2_REFUSED_STREAM')) return true;
  }
  return false;
}

/** Whoever has a call under way is told of the error by that. */
const told = () => {};
