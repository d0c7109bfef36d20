import type { FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { clientAddress, clientNetwork, loggedAddress } from '../../gateway/client-address.ts';

const request = (ip: string) => ({ ip, raw: { socket: { remoteAddress: '192.0.2.9' } } }) as FastifyRequest;

test.each([
  ['198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
  ['::ffff:198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2', '2001:db8:1::/48'],
  ['2001:db8::6', '2001:db8:0:0', '2001:db8:0::/48'],
  ['2001:db8:1:2::', '2001:db8:1:2', '2001:db8:1::/48'],
  ['::1', '0:0:0:0', '0:0:0::/48'],
  ['::', '0:0:0:0', '0:0:0::/48'],
  ['1::8', '1:0:0:0', '1:0:0::/48'],
])('of %s one client is %s, and the log has %s', (ip, network, logged) => {
  expect(clientNetwork(request(ip))).toBe(network);
  expect(loggedAddress(request(ip), 'network')).toBe(logged);
  expect(loggedAddress(request(ip), 'whole')).toBe(ip);
  expect(loggedAddress(request(ip), 'none')).toBeUndefined();
});

test.each(['unknown', '', 'x'.repeat(9000), '198.51.100.7:80', '<script>'])(
  'what is no address is that of the connection: %.20s',
  (ip) => expect(clientAddress(request(ip))).toBe('192.0.2.9'),
);
