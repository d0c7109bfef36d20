import { BlockList, isIPv4, isIPv6 } from 'node:net';

/** Returns a block list of addresses and subnets (`ADDRESS/BITS`). */
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

/** IPv6 blocks whose last four bytes are the IPv4 address that is reached: mapped, and NAT64. */
const CONTAINS_IPV4 = addressBlocks('::ffff:0:0/96', '64:ff9b::/96');

/**
 * Returns the canonical form of an address, without its zone, or undefined if the text is not an address. An IPv6 address that contains an
 * IPv4 address becomes IPv4. Other IPv6 addresses become lower case, with the longest run of zeros left out.
 */
export function canonicalAddress(text: string): string | undefined {
  const [address = ''] = text.split('%', 1);
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return undefined;
  const canonical = new URL(`http://[${address}]`).host.slice(1, -1);
  if (!CONTAINS_IPV4.check(canonical, 'ipv6')) return canonical;
  // In these blocks, only the groups of the last four bytes follow the zeros.
  const [, tail = ''] = canonical.split('::');
  const [high = 0, low = 0] = ['0', ...tail.split(':')].slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >>> 8, high & 255, low >>> 8, low & 255].join('.');
}
