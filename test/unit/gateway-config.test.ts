import { describe, expect, test } from 'vitest';
import { readSentinelAddress } from '../../gateway/admission/quota/sentinel-address.ts';
import { readGatewayConfig } from '../../gateway/config.ts';

describe('the address of Redis', () => {
  test.each([
    'redis://localhost',
    'redis://localhost/',
    'redis://user:p%40ss@localhost:6379/3',
    'rediss://:password@cache.example:6380/0',
    'redis+sentinel://one,two:26380/quota',
    'redis+sentinel://user:p%40ss@one:26379,[::1]:26380/my.quota-1/3',
  ])('may be %s', (REDIS_URL) => {
    expect(readGatewayConfig({ REDIS_URL }).REDIS_URL?.reveal()).toBe(REDIS_URL);
  });

  test.each([
    'localhost:6379',
    'http://localhost',
    'redis://localhost/quota',
    'redis://localhost/1/2',
    'redis://localhost/-1',
    'redis://user:hunter2%zz@localhost',
    'redis+sentinel://one',
    'redis+sentinel://one,/quota',
    'redis+sentinel://one:70000/quota',
    'redis+sentinel://one/quota/first',
    'redis+sentinel://user:hunter2%zz@one/quota',
    'redis+sentinel://user:hunter2/z@one/quota',
  ])('may not be %s, which is not in the message', (REDIS_URL) => {
    expect(() => readGatewayConfig({ REDIS_URL })).toThrow(/REDIS_URL must be redis:/);
    expect(() => readGatewayConfig({ REDIS_URL })).not.toThrow(/hunter2/);
  });

  test('that names sentinels is parsed completely', () => {
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

  test('of a cluster has no number of a database', () => {
    for (const [address, isFault] of [
      ['redis://a', false],
      ['rediss://u:p@a:1/0', false],
      ['redis://a/3', true],
      ['rediss://u:p@a:1/03', true],
    ] as const) {
      const read = () => readGatewayConfig({ REDIS_URL: address, REDIS_CLUSTER: 'yes' });
      if (isFault) expect(read).toThrow(/a Redis Cluster has only one: leave its number out/);
      else expect(read).not.toThrow();
    }
  });

  test('that names sentinels cannot be used with a cluster', () => {
    const REDIS_URL = 'redis+sentinel://one/quota';
    expect(() => readGatewayConfig({ REDIS_URL, REDIS_CLUSTER: 'yes' })).toThrow(/REDIS_CLUSTER must be no/);
  });
});

test('gateways that share a port need a Redis, or each would count on its own', () => {
  expect(() => readGatewayConfig({ REUSE_PORT: 'yes' })).toThrow(/REUSE_PORT needs REDIS_URL/);
  expect(readGatewayConfig({ REUSE_PORT: 'yes', REDIS_URL: 'redis://localhost' }).REUSE_PORT).toBe(true);
});

describe('the prefix of entries in Redis', () => {
  const REDIS_URL = 'redis://localhost';

  test.each(['staging:', 'a', 'lead-intake.production:'])('may be %s', (REDIS_KEY_PREFIX) => {
    expect(readGatewayConfig({ REDIS_URL, REDIS_KEY_PREFIX }).REDIS_KEY_PREFIX).toBe(REDIS_KEY_PREFIX);
  });

  test.each(['{staging}', 'a b', 'x'.repeat(65), '*'])('may not be %s', (REDIS_KEY_PREFIX) => {
    expect(() => readGatewayConfig({ REDIS_URL, REDIS_KEY_PREFIX })).toThrow(/REDIS_KEY_PREFIX must be/);
  });

  test('needs the address of Redis', () => {
    expect(() => readGatewayConfig({ REDIS_KEY_PREFIX: 'staging:' })).toThrow(/REDIS_KEY_PREFIX needs REDIS_URL/);
  });
});
