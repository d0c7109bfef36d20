import { isIPv6 } from 'node:net';

/** Returns the host of a URL by which this machine reaches a server that listens on an address or a name. */
export function localHost(listensOn: string): string {
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[listensOn] ?? listensOn;
  return isIPv6(host) ? `[${host}]` : host;
}
