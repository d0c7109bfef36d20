import { type ClientHttp2Stream, constants } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { Http2SessionManager } from '@connectrpc/connect-node';
import { CORE_CONNECT_MS } from '../../common/deadlines.ts';

/**
 * The connections to a core, with workarounds for two bugs of connect-node and one of Node.
 *
 * A core that stops announces it first. With no call in flight, connect-node then closes the connection with an error,
 * but removes its error listener once the next call begins, so the error would end the process
 * (connectrpc/connect-es#1768).
 *
 * When a connection does not answer a ping, connect-node may open two others concurrently and lose the call that waits
 * for the first: it would wait forever, and so would all requests on it. A call therefore fails when it gets no
 * connection in time.
 *
 * Node sends the address of an IPv6 core without brackets, which is no authority of a URL.
 */
export class CoreSessions extends Http2SessionManager {
  readonly #connectMs: number;
  readonly #authority: string;

  /** @param connectMs the timeout of a call for getting a connection; milliseconds */
  constructor(
    url: string,
    pings?: ConstructorParameters<typeof Http2SessionManager>[1],
    tls?: ConstructorParameters<typeof Http2SessionManager>[2],
    connectMs: number = CORE_CONNECT_MS,
  ) {
    super(url, pings, tls);
    this.#connectMs = connectMs;
    this.#authority = new URL(url).host;
  }

  /** @throws ConnectError with `unavailable` when there is no connection in time */
  override async request(
    ...[method, path, headers, options]: Parameters<Http2SessionManager['request']>
  ): Promise<ClientHttp2Stream> {
    const all = { ...headers, ':authority': this.#authority };
    const stream = await this.#withTimeout(super.request(method, path, all, options));
    const { session } = stream;
    if (session && !session.listeners('error').includes(ignoreError)) session.on('error', ignoreError);
    return stream;
  }

  #withTimeout(opening: Promise<ClientHttp2Stream>): Promise<ClientHttp2Stream> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new ConnectError(`no connection within ${this.#connectMs} ms`, Code.Unavailable));
        // No caller is left for a stream that opens later.
        opening.then((stream) => stream.on('error', ignoreError).close(constants.NGHTTP2_CANCEL), ignoreError);
      }, this.#connectMs);
      opening.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

/**
 * Returns whether a call failed before any core processed it, so that it may be retried whatever it was: it arrived
 * while the core was closing the connection, and HTTP/2 refused its stream.
 */
export function isUnprocessed(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message.endsWith('NGHTTP2_REFUSED_STREAM')) return true;
  }
  return false;
}

/** A call in flight gets the error on its own stream. */
const ignoreError = () => {};
