import { isIP, isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * The address of the client of a request: that of its connection or, behind trusted proxies, the last in `X-Forwarded-For`
 * that is none of theirs. What a client writes into that header stands before what the first of them adds.
 */
export function clientAddress({ ip, raw }: FastifyRequest): string {
  // A trusted proxy may pass on what is no address, and so of any length.
  return isIP(ip) === 0 ? (raw.socket.remoteAddress ?? '') : ip;
}

/** Of an IPv6 address, its network of so many groups of 16 bits; of an IPv4 address, so many of its four numbers. */
function networkOf(address: string, groups: number, numbers: number): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
  if (!isIPv6(mapped)) return mapped.split('.').slice(0, numbers).join('.');
  const [head = '', tail = ''] = mapped.split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail === '' ? [] : tail.split(':');
  const zeros = mapped.includes('::') ? 8 - before.length - after.length : 0;
  return [...before, ...Array<string>(zeros).fill('0'), ...after].slice(0, groups).join(':');
}

/** What counts as one client, by its address: an IPv6 client has a network of 64 bits. */
export const clientOf = (address: string): string => networkOf(address, 4, 4);
export const clientNetwork = (request: FastifyRequest): string => clientOf(clientAddress(request));

export const ADDRESS_LOGGING = ['none', 'network', 'whole'] as const;
export type AddressLogging = (typeof ADDRESS_LOGGING)[number];

/** What the log may have of an address; `network`: 24 bits of IPv4, 48 of IPv6, which identify nobody. Undefined: nothing. */
export function loggedAddress(request: FastifyRequest, logging: AddressLogging): string | undefined {
  if (logging === 'none') return undefined;
  const address = clientAddress(request);
  if (logging === 'whole') return address;
  const network = networkOf(address, 3, 3);
  return network.includes('.') ? `${network}.0/24` : `${network}::/48`;
}
