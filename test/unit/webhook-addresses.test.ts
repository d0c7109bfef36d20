import { describe, expect, test } from 'vitest';
import { isAllowed } from '../../relay/addresses.ts';

const GLOBAL = [
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '2606:4700::1111',
  '2a00:1450:4001::1',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
];

const PRIVATE = [
  ...[
    '10.0.0.1',
    '10.255.255.255',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.1.2',
  ],
  ...[
    '::1',
    'fc00::1',
    'fdff:ffff::1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:c0a8:101',
    '64:ff9b::10.1.2.3',
    '64:ff9b::c0a8:1',
  ],
];

const FORBIDDEN = [
  ...['0.0.0.0', '0.1.2.3', '169.254.0.1', '169.254.169.254', '224.0.0.1', '239.1.1.1', '240.0.0.1', '255.255.255.255'],
  ...[
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.7',
    '203.0.113.9',
    '192.88.99.1',
  ],
  ...['::', 'fe80::1', 'fe80::1%eth0', 'fe80::1%1', 'febf::1', 'ff02::1', 'fd00:ec2::254', 'fd20:ce::254', 'fec0::1'],
  ...[
    '2001::1',
    '2001:0:4136:e378::1',
    '2001:db8::1',
    '2002:a9fe:a9fe::1',
    '2002:808:808::1',
    '3fff::1',
    '5f00::1',
    '100::1',
  ],
  // Forms of 169.254.169.254, of 0.0.0.1, and of addresses that only contain an IPv4 address by other conventions.
  ...[
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::169.254.169.254',
    '::ffff:0:1',
    '64:ff9b::1',
  ],
  ...['64:ff9b::', '64:ff9b:1::8.8.8.8', '64:ff9b:1::a9fe:a9fe', '::8.8.8.8', '::127.0.0.1', '::ffff:0:8.8.8.8'],
  ...['', 'localhost', '8.8.8', '0x7f.1', '017700000001', '2130706433', '8.8.8.8 ', '[::1]', 'example.org'],
];

// @proves relay-6
describe('a webhook goes to global addresses only', () => {
  test.each(GLOBAL)('a webhook may go to the global address %s', (address) => {
    expect([isAllowed(address, false), isAllowed(address, true)]).toEqual([true, true]);
  });

  test.each(PRIVATE)('a webhook may go to the private address %s only if that is allowed', (address) => {
    expect([isAllowed(address, false), isAllowed(address, true)]).toEqual([false, true]);
  });

  test.each(FORBIDDEN)('a webhook never goes to "%s"', (address) => {
    expect([isAllowed(address, false), isAllowed(address, true)]).toEqual([false, false]);
  });
});
