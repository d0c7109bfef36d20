import { isIPv6 } from 'node:net';

/** Returns the host of a URL by which this machine reaches a server that listens on an address or a name. */
export const localHost = (listensOn: string): string =>
  hostOfUrl({ '0.0.0.0': '127.0.0.1', '::': '::1' }[listensOn] ?? listensOn);

/** Returns an address or a name as the host of a URL. */
export const hostOfUrl = (host: string): string => (isIPv6(host) ? `[${host}]` : host);
