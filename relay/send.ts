import type { LookupAddress } from 'node:dns';
import { lookup as lookUp } from 'node:dns/promises';
import { Agent, request } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { RELAY_CONNECT_MS, RELAY_REQUEST_MS } from '../common/deadlines.ts';
import { DAY_MS } from '../common/units.ts';
import { isAllowed } from './addresses.ts';

/** The maximum size of a response's headers, and of a body that is drained to reuse the connection; bytes. */
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_BODY_BYTES = 16 * 1024;

/** How long draining a body may take; milliseconds. The outcome does not wait for this, but a next request may. */
const MAX_BODY_MS = 1000;

/** The maximum number of interim responses (1xx). */
const MAX_INTERIM_RESPONSES = 8;

/** How long a connection is reused, and how long it may be idle; milliseconds. */
const CONNECTION_AGE_MS = 60_000;
const CONNECTION_IDLE_MS = 4000;

/** How an attempt ended. */
export interface Outcome {
  /** DELIVERED, or a code that says why not. */
  readonly code: string;
  /** The pause that the receiver asks for; milliseconds, at most a day. */
  readonly retryAfterMs?: number | undefined;
}

export const DELIVERED = 'DELIVERED';

/** Test doubles for Node's own: how names are resolved, and the certificate authorities of receivers. */
export interface Network {
  readonly resolve?: ((host: string) => Promise<readonly LookupAddress[]>) | undefined;
  readonly ca?: string;
}

/** Creates an endpoint's connections. They use no proxy, because a proxy resolves names itself. Each verifies the certificate. */
export const newConnections = (maxSockets: number): Agent =>
  new Agent({ keepAlive: true, maxSockets, timeout: CONNECTION_IDLE_MS, maxCachedSessions: 0 });

/** When each connection was first used. */
const openedAt = new WeakMap<object, number>();

/** A request to an endpoint. */
export interface Attempt {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly allowPrivate: boolean;
  readonly connections: Agent | false;
}

const resolving = new Map<string, Promise<LookupAddress[]>>();

/** Resolves a name, with one look-up per name at a time: each holds a thread until it is answered, even if nobody waits any longer. */
function resolveOnce(name: string): Promise<readonly LookupAddress[]> {
  const found = resolving.get(name) ?? lookUp(name, { all: true }).finally(() => resolving.delete(name));
  resolving.set(name, found);
  return found;
}

/** Sends a request within RELAY_REQUEST_MS, to checked addresses only. Never rejects. */
export async function send(attempt: Attempt, signal: AbortSignal, network: Network = {}): Promise<Outcome> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(RELAY_REQUEST_MS)]);
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), RELAY_CONNECT_MS);
  try {
    const { hostname } = new URL(attempt.url);
    const host = hostname.replace(/^\[|\]$/g, '');
    const resolve = network.resolve ?? resolveOnce;
    // A literal address needs no resolution, but the same check.
    const found = isIP(host)
      ? [{ address: host, family: isIP(host) }]
      : await Promise.race([resolve(host), late.promise]);
    if (!found) return { code: 'TIMEOUT' };
    if (found.length === 0) return { code: 'NAME_NOT_RESOLVED' };
    if (!found.every(({ address }) => isAllowed(address, attempt.allowPrivate))) return { code: 'ADDRESS_REFUSED' };
    return await sendTo(found, attempt, ending, network.ca);
  } catch {
    return { code: 'NAME_NOT_RESOLVED' };
  } finally {
    clearTimeout(timer);
  }
}

function sendTo(
  addresses: readonly LookupAddress[],
  attempt: Attempt,
  signal: AbortSignal,
  ca?: string,
): Promise<Outcome> {
  const { url, body, headers, connections } = attempt;
  // Connects only to the checked addresses: the name is not resolved again.
  const lookup: LookupFunction = (_, { all }, done) =>
    all ? done(null, [...addresses]) : done(null, addresses[0]?.address ?? '', addresses[0]?.family);
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const sent = request(url, {
    ...{ method: 'POST', headers, agent: connections, lookup, maxHeaderSize: MAX_HEADER_BYTES, signal },
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
  });
  let isSecure = false;
  let isAnswered = false;
  let interim = 0;
  const fail = (code: string) => {
    resolve({ code });
    sent.destroy();
  };
  const connecting = setTimeout(() => fail('TIMEOUT'), RELAY_CONNECT_MS);
  const onSecure = () => {
    isSecure = true;
    clearTimeout(connecting);
  };
  sent.on('socket', (socket) => {
    if (sent.reusedSocket) onSecure();
    else socket.once('secureConnect', onSecure);
    if (!openedAt.has(socket)) openedAt.set(socket, performance.now());
  });
  sent.on('information', () => {
    interim += 1;
    if (interim > MAX_INTERIM_RESPONSES) fail('RESPONSE_INVALID');
  });
  sent.on('response', (response) => {
    isAnswered = true;
    const { statusCode: status = 0, socket } = response;
    const code = status >= 200 && status < 300 ? DELIVERED : `HTTP_${status}`;
    resolve({ code, retryAfterMs: retryAfter(response.headers['retry-after']) });
    // Drains a short body, so that the connection can be reused.
    let bytes = performance.now() - (openedAt.get(socket) ?? 0) < CONNECTION_AGE_MS ? 0 : MAX_BODY_BYTES;
    const reading = setTimeout(() => response.destroy(), MAX_BODY_MS);
    response.on('close', () => clearTimeout(reading));
    response.on('error', () => {});
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) response.destroy();
    });
    if (bytes > 0) response.destroy();
  });
  sent.on('error', (error: NodeJS.ErrnoException) => {
    // Errors after the response are ignored: the outcome is known.
    if (isAnswered) return;
    // The receiver may have closed the connection just as it was reused.
    if (sent.reusedSocket && /^(?:ECONNRESET|EPIPE)$/.test(error.code ?? '') && !signal.aborted) {
      resolve(sendTo(addresses, { ...attempt, connections: false }, signal, ca));
    } else resolve({ code: toFailureCode(error, isSecure) });
  });
  sent.on('close', () => {
    clearTimeout(connecting);
    // 'close' is the only event after an unsolicited 101.
    resolve({ code: 'RESPONSE_INVALID' });
  });
  sent.end(body);
  return promise;
}

function toFailureCode({ name, code = '' }: NodeJS.ErrnoException, isSecure: boolean): string {
  if (name === 'AbortError' || code === 'ETIMEDOUT') return 'TIMEOUT';
  if (/^HPE_/.test(code)) return 'RESPONSE_INVALID';
  if (/^E(?:CONN|PIPE|HOST|NET|ADDR|ACCES|PERM)/.test(code)) return 'CONNECTION_FAILED';
  return isSecure ? 'RESPONSE_INVALID' : 'TLS';
}

/** Reads `Retry-After`, in seconds or as a date. Returns milliseconds from now, from 0 to a day. */
function retryAfter(value = ''): number | undefined {
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), DAY_MS);
}
