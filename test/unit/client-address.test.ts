import type { FastifyRequest } from 'fastify';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { clientAddresses, loggedAddress, toClient } from '../../gateway/client-address.ts';

test.each([
  ['198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
  ['::ffff:198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
  ['::FFFF:C633:6407', '198.51.100.7', '198.51.100.0/24'],
  ['0:0:0:0:0:ffff:c633:6407', '198.51.100.7', '198.51.100.0/24'],
  ['64:ff9b::198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
  ['64:ff9b::c633:6407', '198.51.100.7', '198.51.100.0/24'],
  ['64:ff9b:1::c633:6407', '64:ff9b:1:0', '64:ff9b:1::/48'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2', '2001:db8:1::/48'],
  ['2001:0DB8:0001:2::6', '2001:db8:1:2', '2001:db8:1::/48'],
  ['2001:db8::6', '2001:db8:0:0', '2001:db8:0::/48'],
  ['2001:db8:1:2::', '2001:db8:1:2', '2001:db8:1::/48'],
  ['fe80::1%eth0', 'fe80:0:0:0', 'fe80:0:0::/48'],
  ['::1', '0:0:0:0', '0:0:0::/48'],
  ['::', '0:0:0:0', '0:0:0::/48'],
  ['1::8', '1:0:0:0', '1:0:0::/48'],
])('counts %s as the client %s, and logs %s', (address, network, logged) => {
  expect(toClient(address)).toBe(network);
  expect(loggedAddress(address, 'network')).toBe(logged);
  expect(loggedAddress(address, 'whole')).toBe(address);
  expect(loggedAddress(address, 'none')).toBeUndefined();
});

/** Finds clients behind the proxies 192.0.2.9 and 10.0.0.0/8, and collects what is logged. */
function clientsBehindProxies(proxies: readonly string[] | undefined = ['192.0.2.9', '10.0.0.0/8', 'fd00::/8']) {
  const logged: string[] = [];
  const find = clientAddresses(proxies, pino({}, { write: (line) => void logged.push(line) }));
  return {
    logged,
    findClient: (forwarded: string | undefined, remoteAddress: string | undefined = '192.0.2.9') =>
      find({
        headers: { 'x-forwarded-for': forwarded },
        raw: { socket: { remoteAddress } },
      } as unknown as FastifyRequest),
  };
}

// @proves hostile-10
test.each([
  ['198.51.100.7', '198.51.100.7'],
  ['198.51.100.7:54321', '198.51.100.7'],
  ['2001:db8::7', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['[2001:DB8:0::7]:443', '2001:db8::7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['[64:ff9b::c633:6407]:1', '198.51.100.7'],
  ['203.0.113.1, 198.51.100.7', '198.51.100.7'],
  ['unknown, 198.51.100.7:1', '198.51.100.7'],
  ['203.0.113.1:80,198.51.100.7:2 ,  10.0.0.5:54321', '198.51.100.7'],
  ['203.0.113.1, 198.51.100.7, [fd00::5]:1, 10.0.0.5', '198.51.100.7'],
  ['10.0.0.6, 10.0.0.5', '10.0.0.6'],
  [`${'10.0.0.6,'.repeat(1700)}198.51.100.7`, '198.51.100.7'],
])('a trusted proxy names the client by X-Forwarded-For, with or without ports: %.60s', (forwarded, client) => {
  const proxies = clientsBehindProxies();
  expect(proxies.findClient(forwarded)).toBe(client);
  expect(proxies.findClient(forwarded, '::ffff:192.0.2.9')).toBe(client);
  expect(proxies.logged).toEqual([]);
});

/** The cases in which all clients behind a proxy count as one. */
const WITHOUT_EFFECT: readonly [string, forwarded: string | undefined, peer: string, client: string, RegExp][] = [
  ['a name', 'unknown', '192.0.2.9', '192.0.2.9', /has no address/],
  ['nothing', '', '192.0.2.9', '192.0.2.9', /has no address/],
  ['a very long text', 'x'.repeat(9000), '192.0.2.9', '192.0.2.9', /has no address/],
  ['an invalid port', '198.51.100.7:http', '192.0.2.9', '192.0.2.9', /has no address/],
  ['a name before another proxy', '198.51.100.7, _hidden, 10.0.0.5', '192.0.2.9', '10.0.0.5', /has no address/],
  ['no header', undefined, '192.0.2.9', '192.0.2.9', /sent no X-Forwarded-For/],
  ['the header, and is not trusted', '198.51.100.7', '203.0.113.1', '203.0.113.1', /is ignored/],
];

// @proves hostile-10
test.each(WITHOUT_EFFECT)(
  'a proxy that sends %s counts as the client, which is logged once and without an address',
  (_, forwarded, peer, client, message) => {
    const { findClient, logged } = clientsBehindProxies();
    for (let count = 0; count < 3; count += 1) expect(findClient(forwarded, peer)).toBe(client);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatch(message);
    expect(logged[0]).not.toMatch(/198\.51|203\.0|192\.0|hidden|xxx/);
  },
);

test('without trusted proxies the client is the peer, and nothing is logged', () => {
  const { findClient, logged } = clientsBehindProxies([]);
  const unset = clientAddresses(undefined, pino({}, { write: (line) => void logged.push(line) }));
  const request = { headers: { 'x-forwarded-for': '198.51.100.7' }, raw: { socket: { remoteAddress: '192.0.2.9' } } };
  expect(unset(request as unknown as FastifyRequest)).toBe('192.0.2.9');
  expect(logged).toEqual([]);
  expect(findClient(undefined)).toBe('192.0.2.9');
});

test('a closed connection has no client address', () => {
  const { findClient, logged } = clientsBehindProxies();
  const gone = clientAddresses(['192.0.2.9'], pino({ level: 'silent' }));
  expect(gone({ headers: {}, raw: { socket: {} } } as unknown as FastifyRequest)).toBe('');
  expect(findClient('198.51.100.7')).toBe('198.51.100.7');
  expect(logged).toEqual([]);
});
