import { isIPv4 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { addressBlocks, canonicalAddress } from '../common/addresses.ts';
import { Throttle } from '../common/throttle.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The canonical address of the client; '' if the client has disconnected. */
    readonly clientAddress: string;
  }
}

/** Reasons why all clients behind a proxy count as one. Each is logged at most once per LOG_INTERVAL_MS. */
const FAULTS = {
  untrusted: 'X-Forwarded-For is ignored: its sender is not in TRUSTED_PROXIES; if it is your proxy, add its address',
  absent:
    'a proxy in TRUSTED_PROXIES sent no X-Forwarded-For, so its clients count as one: have it send their addresses',
  invalid:
    'X-Forwarded-For of a proxy in TRUSTED_PROXIES has no address, so its clients count as one: have it send their addresses',
};

const LOG_INTERVAL_MS = 3_600_000;

/** An address with or without a port, as Azure, AWS and IIS write it. An IPv6 address before a port has brackets. */
const WITH_PORT = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/;

function addressIn(text: string): string | undefined {
  const [, v6, v4] = WITH_PORT.exec(text) ?? [];
  return canonicalAddress(v6 ?? v4 ?? text);
}

/**
 * Returns a function that finds the client's address: the connection's or, behind trusted proxies, the last in `X-Forwarded-For` that is
 * not a proxy's. Whatever a client writes into that header precedes what the first proxy adds.
 */
export function clientAddresses(
  proxies: readonly string[] | undefined,
  log: Logger,
): (request: FastifyRequest) => string {
  const trusted = addressBlocks(...(proxies ?? []));
  const isTrusted = (address: string) => trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  const throttle = new Throttle(LOG_INTERVAL_MS, Object.keys(FAULTS).length);
  const warn = (fault: keyof typeof FAULTS) => throttle.allow(fault) && log.warn(FAULTS[fault]);
  return ({ headers, raw }) => {
    let client = canonicalAddress(raw.socket.remoteAddress ?? '') ?? '';
    if (!proxies || client === '') return client;
    let rest = headers['x-forwarded-for']?.toString();
    if (!isTrusted(client)) {
      if (rest !== undefined) warn('untrusted');
      return client;
    }
    if (rest === undefined) warn('absent');
    // Reads from the end, and only as far as proxies are trusted: a client may have written thousands of addresses before.
    while (rest !== undefined && isTrusted(client)) {
      const comma = rest.lastIndexOf(',');
      const address = addressIn(rest.slice(comma + 1).trim());
      if (address === undefined) {
        warn('invalid');
        return client;
      }
      client = address;
      rest = comma < 0 ? undefined : rest.slice(0, comma);
    }
    return client;
  };
}

/** Returns the network of an address: the first `groups` of 16 bits of IPv6, or the first `octets` of IPv4. */
function toNetwork(address: string, groups: number, octets: number): string {
  const canonical = canonicalAddress(address) ?? '';
  if (!canonical.includes(':')) return canonical.split('.').slice(0, octets).join('.');
  const [before = [], after = []] = canonical.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].slice(0, groups).join(':');
}

/** Returns what counts as one client: a network of 64 bits for IPv6, the address for IPv4. */
export const toClient = (address: string): string => toNetwork(address, 4, 4);

export const ADDRESS_LOGGING = ['none', 'network', 'whole'] as const;
export type AddressLogging = (typeof ADDRESS_LOGGING)[number];

/** Returns the loggable part of an address, if any. `network` keeps 24 bits of IPv4 or 48 of IPv6, which identify nobody. */
export function loggedAddress(clientAddress: string, logging: AddressLogging): string | undefined {
  if (logging === 'none') return undefined;
  if (logging === 'whole') return clientAddress;
  const network = toNetwork(clientAddress, 3, 3);
  return network.includes('.') ? `${network}.0/24` : `${network}::/48`;
}
