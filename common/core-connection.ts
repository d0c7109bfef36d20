import { type LookupAddress, lookup } from 'node:dns';
import { type ClientHttp2Stream, constants } from 'node:http2';
import type { LookupFunction } from 'node:net';
import { Code, ConnectError, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import type { Logger } from 'pino';
import { CORE_CONNECT_MS, CORE_PING_INTERVAL_MS, CORE_PING_TIMEOUT_MS } from './deadlines.ts';
import { findCauses } from './error-summary.ts';
import { bearerToken, readCoreToken, type SettingFile, type TokenAccess } from './settings.ts';
import type { TlsCredentials, TlsFiles } from './tls-credentials.ts';
import { watchFiles } from './watched-files.ts';

/** By what a process reaches a core: values of its settings. */
export interface CoreAccess extends TokenAccess {
  readonly CORE_URL: string;
  readonly CORE_CA_FILE: SettingFile | undefined;
  readonly CORE_CLIENT_CERT_FILE: SettingFile | undefined;
  readonly CORE_CLIENT_KEY_FILE: SettingFile | undefined;
}

/**
 * The faults of certificates that a process has for its core.
 *
 * @param setting the one with the address of the core
 */
export function certificateFaults(
  { CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: Omit<CoreAccess, 'CORE_URL' | keyof TokenAccess>,
  setting: string,
  address: string | undefined,
): string[] {
  const faults: string[] = [];
  if (!CORE_CLIENT_CERT_FILE !== !CORE_CLIENT_KEY_FILE) {
    faults.push('CORE_CLIENT_CERT_FILE and CORE_CLIENT_KEY_FILE must be set together');
  }
  if ((CORE_CA_FILE || CORE_CLIENT_CERT_FILE) && !address?.startsWith('https:')) {
    faults.push(`${setting} must be an https:// address when CORE_CA_FILE or CORE_CLIENT_CERT_FILE is set`);
  }
  return faults;
}

/** The maximum size of a response message; bytes. A page of the longest leads, or a batch of them, has about 1 MB. */
export const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/**
 * Creates the transport to a core, which connects at the first call and after each loss, with the current credentials.
 */
export function connectToCore(
  { CORE_URL }: Pick<CoreAccess, 'CORE_URL'>,
  credentials: TlsCredentials,
  token: CoreToken,
): { transport: Transport; sessions: CoreSessions } {
  const sessions = new CoreSessions(
    CORE_URL,
    // A ping detects a core that vanished sooner than the operating system's timeout.
    { pingIntervalMs: CORE_PING_INTERVAL_MS, pingTimeoutMs: CORE_PING_TIMEOUT_MS },
    // A getter, because it is read for each connection.
    {
      lookup: lookUpCore,
      get secureContext() {
        return credentials.secureContext;
      },
    },
  );
  const transport = createConnectTransport({
    baseUrl: CORE_URL,
    httpVersion: '2',
    useBinaryFormat: true,
    sessionManager: sessions,
    readMaxBytes: MAX_RESPONSE_BYTES,
    // Within one network, compression costs more than it saves.
    acceptCompression: [],
    interceptors: [repeatUnprocessed, presentToken(token)],
  });
  return { transport, sessions };
}

/**
 * Resolves the name of a core for each connection, which goes to the first address that accepts it: any of them.
 */
export const lookUpCore: LookupFunction = (name, options, done) =>
  lookup(name, { ...options, all: true }, (error, found) => {
    const addresses = error ? [] : inAnyOrder(found);
    if (options.all) done(error, addresses);
    else done(error, addresses[0]?.address ?? '', addresses[0]?.family);
  });

/**
 * Returns the addresses of a name in random order, those of the family that the system prefers first. The system itself puts the one
 * with the most bits of the machine's own address first, so that all gateways of a subnet would choose the same core of several.
 */
export function inAnyOrder(addresses: readonly LookupAddress[], random: () => number = Math.random): LookupAddress[] {
  const preferred = addresses[0]?.family;
  return addresses
    .map((address) => ({ address, turn: Number(address.family !== preferred) + random() }))
    .toSorted((one, other) => one.turn - other.turn)
    .map(({ address }) => address);
}

/** Returns the authorities that verify the core, and the client certificate that it is shown. */
export function tlsToCore({ CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: CoreAccess): TlsFiles {
  return { ca: CORE_CA_FILE, cert: CORE_CLIENT_CERT_FILE, key: CORE_CLIENT_KEY_FILE };
}

/** Adds the core's token to every call, if there is one. A call of one request whose token is refused is sent again with the other one. */
export function presentToken(token: CoreToken): Interceptor {
  return (next) => async (request) => {
    const { authorization } = token;
    if (authorization === undefined) return next(request);
    request.header.set('authorization', authorization);
    try {
      return await next(request);
    } catch (error) {
      const other = request.stream ? undefined : token.findReplacement(authorization, error);
      if (other === undefined) throw error;
      request.header.set('authorization', other);
      return next(request);
    }
  };
}

/** For how long the former token is presented once the new one was refused; milliseconds. */
const PRESENT_FORMER_MS = 10_000;

/**
 * The token that a process presents to the core. Reloaded when its file changes; the former is presented while the core does not accept the
 * new one, because a file that both read does not change for both at once, nor for each of several cores.
 */
export class CoreToken {
  readonly #file: SettingFile | undefined;
  #newest: string | undefined;
  #former: string | undefined;
  #presentsFormerUntil = Number.NEGATIVE_INFINITY;

  constructor(access: TokenAccess) {
    this.#file = access.coreTokenFile;
    const token = readCoreToken(access);
    this.#newest = token && `Bearer ${token.reveal()}`;
  }

  /** The `authorization` header of calls; undefined: none. */
  get authorization(): string | undefined {
    return performance.now() < this.#presentsFormerUntil ? this.#former : this.#newest;
  }

  /**
   * Returns the header to present instead of the one that a core has refused: with the former token, for a while, or with the newest again.
   *
   * @param error of a call with `presented`. A core refuses a token before it reads the call, so that may be repeated
   * @returns undefined: that is not why the call failed, or there is no other token
   */
  findReplacement(presented: string | undefined, error: unknown): string | undefined {
    if (this.#former === undefined || ConnectError.from(error).code !== Code.Unauthenticated) return undefined;
    const isNewest = presented === this.#newest;
    this.#presentsFormerUntil = isNewest ? performance.now() + PRESENT_FORMER_MS : Number.NEGATIVE_INFINITY;
    return this.authorization;
  }

  /**
   * Reloads the token when its file changes, if the new contents have the form of a token.
   *
   * @returns stops watching
   */
  watch(log: Logger): () => void {
    const reload = (text: string) => {
      const read = `Bearer ${bearerToken(text.trim()).reveal()}`;
      if (read === this.#newest) return {};
      this.#former = this.#newest;
      this.#newest = read;
      this.#presentsFormerUntil = Number.NEGATIVE_INFINITY;
      return {};
    };
    return watchFiles({ what: 'tokens for the core', files: [this.#file], reload }, log);
  }
}

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
 * The maximum number of times that a request is sent while no core has processed it: its connection may be closed by age, then twice because
 * of a refused token. With the first call on it that a core refuses, it closes a connection to the calls beside that, which are repeated before
 * its refusal is read.
 */
export const MAX_ATTEMPTS = 5;

/** Sends a call of one request again, over the next connection, if no core has processed it; the caller sees no error. */
export const repeatUnprocessed: Interceptor = (next) => async (request) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await next(request);
    } catch (error) {
      if (request.stream || attempt === MAX_ATTEMPTS || !isUnprocessed(error)) throw error;
    }
  }
};

/**
 * Returns whether a call failed before any core processed it, so that it may be retried whatever it was: it arrived
 * while the core was closing the connection, and HTTP/2 refused its stream. To connect-node that is an internal error.
 */
export const isUnprocessed = (error: unknown): boolean =>
  findCauses(error).some((cause) => cause.message.endsWith('NGHTTP2_REFUSED_STREAM'));

/** A call in flight gets the error on its own stream. */
const ignoreError = () => {};
