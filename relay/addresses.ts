import { type BlockList, isIPv4 } from 'node:net';
import { addressBlocks as blocks, canonicalAddress } from '../common/addresses.ts';

/** Addresses that no endpoint may have, whatever its settings: this network, link-local, multicast, and the credential services of clouds. */
const FORBIDDEN = blocks(
  ...['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4', '::/128', 'fe80::/10', 'ff00::/8'],
  ...['100.100.100.200/32', '168.63.129.16/32', '192.0.0.0/24', 'fd00:ec2::/32', 'fd20:ce::/32'],
);

/** Addresses of this machine and of private networks, which only an endpoint with `allowPrivate` may have. */
const PRIVATE = blocks(
  ...['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '::1/128', 'fc00::/7'],
);

/** Special-purpose blocks (IANA) within otherwise global addresses. */
const SPECIAL = blocks(
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.175.48.0/24', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
);
const GLOBAL_IPV6 = blocks('2000::/3');

/** Returns whether a webhook may be sent to a resolved address. */
export function isAllowed(resolved: string, allowPrivate: boolean): boolean {
  // An address with a zone is link-local.
  const address = resolved.includes('%') ? undefined : canonicalAddress(resolved);
  if (address === undefined) return false;
  const isV4 = isIPv4(address);
  const isIn = (list: BlockList) => list.check(address, isV4 ? 'ipv4' : 'ipv6');
  if (isIn(FORBIDDEN)) return false;
  return isIn(PRIVATE) ? allowPrivate : !isIn(SPECIAL) && (isV4 || isIn(GLOBAL_IPV6));
}
