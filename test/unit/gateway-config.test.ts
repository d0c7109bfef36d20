import { describe, expect, test } from 'vitest';
import { readSentinelAddress } from '../../gateway/admission/quota/sentinel-address.ts';
import { readGatewayConfig } from '../../gateway/config.ts';

describe('the address of Redis', () => {
  test.each([
    'redis://user:p%40ss@localhost:6379/3',
    'rediss://:password@cache.example:6380/0',
    'redis+sentinel://user:p%40ss@one:26379,[::1]:26380/my.quota-1/3',
  ])('accepts the Redis address %s', (REDIS_URL) => {
    expect(readGatewayConfig({ REDIS_URL }).REDIS_URL?.reveal()).toBe(REDIS_URL);
  });

  // @proves redis-9
  test.each([
    'localhost:6379',
    'http://localhost',
    'redis://localhost/quota',
    'redis://localhost/0?db=3',
    'redis://localhost?autoResendUnfulfilledCommands=true',
    'rediss://localhost?tls=',
    'Redis://localhost',
    'redis:localhost',
    'redis://user:hunter2%zz@localhost',
    'redis+sentinel://one',
    'redis+sentinel://one,/quota',
    'redis+sentinel://one:70000/quota',
    'redis+sentinel://user:hunter2/z@one/quota',
  ])('refuses the Redis address %s without repeating its password', (REDIS_URL) => {
    expect(() => readGatewayConfig({ REDIS_URL })).toThrow(/REDIS_URL must be redis:(?!.*hunter2)/s);
  });

  test('an address with sentinels is parsed completely', () => {
    expect(readSentinelAddress('redis+sentinel://user:p%40ss@one,[::1]:26380/my.quota-1/3')).toEqual({
      sentinels: [
        { host: 'one', port: 26_379 },
        { host: '::1', port: 26_380 },
      ],
      name: 'my.quota-1',
      username: 'user',
      password: 'p@ss',
      db: 3,
    });
  });

  test('the address of a Redis Cluster has neither a database number nor sentinels', () => {
    const read = (REDIS_URL?: string) => readGatewayConfig({ REDIS_URL, REDIS_CLUSTER: 'yes' });
    expect(read('rediss://u:p@a:1/0').REDIS_CLUSTER).toBe(true);
    expect(() => read('redis://a/3')).toThrow(/a Redis Cluster has only one: leave its number out/);
    expect(() => read('redis+sentinel://one/quota')).toThrow(/REDIS_CLUSTER must be no/);
    expect(() => read()).toThrow(/REDIS_CLUSTER needs REDIS_URL/);
  });
});

test('the path of PUBLIC_URL has no character that a page of the docs would have to escape', () => {
  const read = (PUBLIC_URL: string) => readGatewayConfig({ PUBLIC_URL }).PUBLIC_URL;
  for (const url of [
    'https://leads.example.test/some/pre-fix_1.2/~a%20b',
    'http://[::1]:8080',
    'https://bücher.example',
  ])
    expect(read(url)).toBe(new URL(url).href.replace(/\/$/, ''));
  for (const path of ['a&b', "a'b", 'a$&b', 'a(b', 'a;b', 'a*b'])
    expect(() => read(`https://leads.example.test/${path}`), path).toThrow(/PUBLIC_URL may have letters/);
});

test('trusted proxies are addresses and networks, but never everybody', () => {
  const read = (TRUSTED_PROXIES: string) => readGatewayConfig({ TRUSTED_PROXIES }).TRUSTED_PROXIES;
  expect(read(' 10.0.0.5, 10.1.0.0/16,fd00::/8 ')).toEqual(['10.0.0.5', '10.1.0.0/16', 'fd00::/8']);
  for (const value of [
    'all',
    '1',
    '0.0.0.0/0',
    '::/0',
    '10.0.0.0/33',
    '10.0.0.5/',
    '10.0.0.5,',
    'proxy.internal',
    '10.1/16/2',
    'fe80::1%eth0',
    '',
  ]) {
    expect(() => read(value), value).toThrow(/TRUSTED_PROXIES (must be|has no value)/);
  }
});

test('a blank address of Redis is reported once, by the name of its variable', () => {
  const read = (env: Record<string, string>) => readGatewayConfig(env);
  expect(() => read({ REDIS_URL: ' ' })).toThrow(/REDIS_URL has no value, and/);
  expect(() => read({ REDIS_URL_FILE: '' })).toThrow(/REDIS_URL has no value in REDIS_URL_FILE, and/);
});

test('REDIS_KEY_PREFIX has no special character of Redis, and needs REDIS_URL', () => {
  const read = (REDIS_KEY_PREFIX: string, REDIS_URL?: string) => readGatewayConfig({ REDIS_URL, REDIS_KEY_PREFIX });
  expect(read('lead-intake.production:', 'redis://a').REDIS_KEY_PREFIX).toBe('lead-intake.production:');
  for (const prefix of ['{staging}', 'a b', 'x'.repeat(65), '*']) {
    expect(() => read(prefix, 'redis://a')).toThrow(/REDIS_KEY_PREFIX must be/);
  }
  expect(() => read('staging:')).toThrow(/REDIS_KEY_PREFIX needs REDIS_URL/);
});
