import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Returns a list of blocks of addresses, each `ADDRESS/BITS`. */
function blocks(...subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}

/**
 * What no endpoint may have, whatever its settings: this network, link-local and multicast addresses, and those at which
 * machines of a cloud are told their credentials.
 */
const FORBIDDEN = blocks(
  ...['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4', '::/128', 'fe80::/10', 'ff00::/8'],
  ...['100.100.100.200/32', '168.63.129.16/32', '192.0.0.0/24', 'fd00:ec2::/32', 'fd20:ce::/32'],
);

/** Addresses of this machine and of private networks, which an endpoint may have if its settings say so. */
const PRIVATE = blocks(
  ...['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '::1/128', 'fc00::/7'],
);

/** Special blocks within what would be global addresses (IANA's registries of special-purpose addresses). */
const SPECIAL = blocks(
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.175.48.0/24', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
);
const GLOBAL_IPV6 = blocks('2000::/3');

/** Forms of IPv6 that contain the IPv4 address that is reached, in their last four bytes: mapped, and NAT64. */
const CONTAINS_IPV4 = blocks('::ffff:0:0/96', '64:ff9b::/96');

/** Whether a webhook may be sent to a resolved address. */
export function isAllowed(address: string, allowPrivate: boolean): boolean {
  const isV4 = isIPv4(address);
  // One with a zone is link-local.
  if (!isV4 && (!isIPv6(address) || address.includes('%'))) return false;
  if (!isV4 && CONTAINS_IPV4.check(address, 'ipv6')) return isAllowed(lastFourBytes(address), allowPrivate);
  const isIn = (list: BlockList) => list.check(address, isV4 ? 'ipv4' : 'ipv6');
  if (isIn(FORBIDDEN)) return false;
  return isIn(PRIVATE) ? allowPrivate : !isIn(SPECIAL) && (isV4 || isIn(GLOBAL_IPV6));
}

/** The last four bytes of an IPv6 address of CONTAINS_IPV4, as an IPv4 address. */
function lastFourBytes(address: string): string {
  // In the canonical form, which a URL has, only groups of those bytes follow the zeros that are left out.
  const [, tail = ''] = new URL(`http://[${address}]`).host.slice(0, -1).split('::');
  const [high = 0, low = 0] = ['0', ...tail.split(':')].slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >>> 8, high & 255, low >>> 8, low & 255].join('.');
}
