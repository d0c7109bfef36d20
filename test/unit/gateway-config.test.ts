import { describe, expect, test } from 'vitest';
import { readGatewayConfig } from '../../gateway/config.ts';

describe('the address of Redis', () => {
  test.each([
    'redis://localhost',
    'redis://localhost/',
    'redis://user:p%40ss@localhost:6379/3',
    'rediss://:password@cache.example:6380/0',
  ])('%s is one', (REDIS_URL) => {
    expect(readGatewayConfig({ REDIS_URL }).REDIS_URL?.reveal()).toBe(REDIS_URL);
  });

  test.each([
    'localhost:6379',
    'http://localhost',
    'redis://localhost/quota',
    'redis://localhost/1/2',
    'redis://localhost/-1',
    'redis://user:hunter2%zz@localhost',
  ])('%s is none, and is not repeated', (REDIS_URL) => {
    expect(() => readGatewayConfig({ REDIS_URL })).toThrow(/REDIS_URL must be redis:/);
    expect(() => readGatewayConfig({ REDIS_URL })).not.toThrow(/hunter2/);
  });
});
