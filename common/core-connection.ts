import { type LookupAddress, lookup } from 'node:dns';
import { type ClientHttp2Stream, constants, type SecureClientSessionOptions } from 'node:http2';
import type { LookupFunction } from 'node:net';
import { Code, ConnectError, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager, type Http2SessionOptions } from '@connectrpc/connect-node';
import type { Logger } from 'pino';
import { CORE_CONNECT_MS, CORE_PING_INTERVAL_MS, CORE_PING_TIMEOUT_MS } from './deadlines.ts';
import { findCauses } from './error-summary.ts';
import { bearerToken, readCoreToken, type SettingFile, type TokenAccess } from './settings.ts';
import type { TlsCredentials, TlsFiles } from './tls-credentials.ts';
import { watchFiles } from './watched-files.ts';

/** The files with which a process verifies a core and identifies itself. */
interface CoreCertificates {
  readonly CORE_CA_FILE: SettingFile | undefined;
  readonly CORE_CLIENT_CERT_FILE: SettingFile | undefined;
  readonly CORE_CLIENT_KEY_FILE: SettingFile | undefined;
}

/** The settings with which a process reaches a core. */
export interface CoreAccess extends TokenAccess, CoreCertificates {
  readonly CORE_URL: string;
}

/** Returns the faults in a process's certificates for its core. @param setting the one with the address of the core */
export function certificateFaults(
  { CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: CoreCertificates,
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

/** The maximum size of a response message; bytes. A page of the longest leads, or a batch of them, takes about 1 MB. */
export const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/** Creates the transport to a core. It connects at the first call and after each loss, with the current credentials. */
export function connectToCore(
  { CORE_URL }: { readonly CORE_URL: string },
  credentials: TlsCredentials,
  token: CoreToken,
): { transport: Transport; sessions: CoreSessions } {
  const sessions = new CoreSessions(
    CORE_URL,
    // A ping detects a lost core sooner than the operating system's timeout does.
    { pingIntervalMs: CORE_PING_INTERVAL_MS, pingTimeoutMs: CORE_PING_TIMEOUT_MS },
    // A getter, because it is read for each new connection.
    {
      lookup: lookUpCore,
      get secureContext() {
        return credentials.loaded.secureContext;
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

/** Resolves a core's name for each connection, which goes to the first address that accepts it. */
export const lookUpCore: LookupFunction = (name, options, done) =>
  lookup(name, { ...options, all: true }, (error, found) => {
    const addresses = error ? [] : shuffled(found);
    if (options.all) done(error, addresses);
    else done(error, addresses[0]?.address ?? '', addresses[0]?.family);
  });

/**
 * Returns addresses in random order, but the family that the system prefers first. The system's own order begins with the address that
 * shares most bits with the machine's, so all gateways of a subnet would choose the same core.
 */
export function shuffled(addresses: readonly LookupAddress[]): LookupAddress[] {
  const preferred = addresses[0]?.family;
  return addresses
    .map((address) => ({ address, rank: Number(address.family !== preferred) + Math.random() }))
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ address }) => address);
}

/** Returns the authorities that verify the core, and the client certificate to present to it. */
export function tlsToCore({ CORE_CA_FILE, CORE_CLIENT_CERT_FILE, CORE_CLIENT_KEY_FILE }: CoreAccess): TlsFiles {
  return { ca: CORE_CA_FILE, cert: CORE_CLIENT_CERT_FILE, key: CORE_CLIENT_KEY_FILE };
}

/** Adds the core's token, if there is one, to every call. Retries a unary call with the other token if the first is refused. */
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

/** How long to present the former token after the new one was refused; milliseconds. */
const PRESENT_FORMER_MS = 10_000;

/**
 * The token that a process presents to the core, reloaded when its file changes. The former token is presented while a core refuses the new
 * one. Two processes, or several cores, do not see a file change at the same moment.
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

  /** The `authorization` header of calls; undefined without a token. */
  get authorization(): string | undefined {
    return performance.now() < this.#presentsFormerUntil ? this.#former : this.#newest;
  }

  /**
   * Returns the header to present after a core refused one: the former token for a while, or the newest again.
   *
   * @param error of a call with `presented`. A core refuses a token before it reads the call, so a retry is safe
   * @returns undefined if the call failed for another reason, or there is no other token
   */
  findReplacement(presented: string | undefined, error: unknown): string | undefined {
    if (this.#former === undefined || ConnectError.from(error).code !== Code.Unauthenticated) return undefined;
    const isNewest = presented === this.#newest;
    this.#presentsFormerUntil = isNewest ? performance.now() + PRESENT_FORMER_MS : Number.NEGATIVE_INFINITY;
    return this.authorization;
  }

  /** Reloads the token when its file changes, if the new contents look like a token. @returns stops watching */
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
 * The bytes that a core may send before this process has read earlier ones. HTTP/2's default is six pages of leads, after which a core would
 * be idle until the gateway has sent those to its clients.
 */
const WINDOW_BYTES = 1024 * 1024;

/**
 * The connections to a core, with workarounds for two bugs of connect-node and one of Node.
 *
 * A core announces that it stops. With no call in flight, connect-node then closes the connection with an error. It removes its error
 * listener once the next call begins, so the error would end the process (connectrpc/connect-es#1768).
 *
 * When a ping is not answered, connect-node may open two connections at once and lose the call that waits for the first. All later requests
 * on it would wait forever, so a call fails when it gets no connection in time.
 *
 * Node sends the address of an IPv6 core without brackets, which is not a valid authority.
 */
export class CoreSessions extends Http2SessionManager {
  readonly #connectMs: number;
  readonly #authority: string;

  /** @param connectMs how long a call waits for a connection; milliseconds */
  constructor(url: string, pings?: Http2SessionOptions, tls?: SecureClientSessionOptions, connectMs = CORE_CONNECT_MS) {
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
    if (session && !session.listeners('error').includes(ignoreError)) {
      session.on('error', ignoreError);
      session.setLocalWindowSize(WINDOW_BYTES);
      session.settings({ initialWindowSize: WINDOW_BYTES });
    }
    return stream;
  }

  #withTimeout(opening: Promise<ClientHttp2Stream>): Promise<ClientHttp2Stream> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new ConnectError(`no connection within ${this.#connectMs} ms`, Code.Unavailable));
        // Nobody waits any more for a stream that opens later.
        opening.then((stream) => stream.on('error', ignoreError).close(constants.NGHTTP2_CANCEL), ignoreError);
      }, this.#connectMs);
      opening.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

/**
 * The maximum number of attempts for a request that no core has processed. Its connection may close once by age and twice after a refused
 * token. A core that refuses a call closes the connection, so calls beside it are retried before the refusal is read.
 */
export const MAX_ATTEMPTS = 5;

/** Retries a unary call over the next connection if no core has processed it. The caller sees no error. */
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
 * Returns whether a call failed before any core processed it, so that any call may be retried. It arrived while the core closed the
 * connection, and HTTP/2 refused its stream. connect-node reports that as an internal error.
 */
export const isUnprocessed = (error: unknown): boolean =>
  findCauses(error).some((cause) => cause.message.endsWith('NGHTTP2_REFUSED_STREAM'));

/** Calls in flight get the error on their own streams. */
const ignoreError = () => {};
