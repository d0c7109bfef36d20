import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Returns a list of addresses, and of blocks of addresses, each `ADDRESS/BITS`. */
export function addressBlocks(...blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [address = '', bits] = block.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** Forms of IPv6 that contain the IPv4 address that is reached, in their last four bytes: mapped, and NAT64. */
const CONTAINS_IPV4 = addressBlocks('::ffff:0:0/96', '64:ff9b::/96');

/**
 * Returns the one form of an address, without its zone: IPv4 where an IPv6 address contains it, or else IPv6 in lower case, with the longest
 * zeros left out. Undefined: the text is no address.
 */
export function canonicalAddress(text: string): string | undefined {
  const [address = ''] = text.split('%', 1);
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return undefined;
  const canonical = new URL(`http://[${address}]`).host.slice(1, -1);
  if (!CONTAINS_IPV4.check(canonical, 'ipv6')) return canonical;
  // Only groups of the last four bytes follow the zeros.
  const [, tail = ''] = canonical.split('::');
  const [high = 0, low = 0] = ['0', ...tail.split(':')].slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >>> 8, high & 255, low >>> 8, low & 255].join('.');
}
