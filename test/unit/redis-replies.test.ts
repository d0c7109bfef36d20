import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { QuotaUnavailable } from '../../gateway/admission/quota/quota-port.ts';
import { createRedisQuota } from '../../gateway/admission/quota/redis-quota.ts';

/** Starts a server that answers every script with the same reply, and other commands like a ready Redis. */
async function aFakeRedis(reply: string): Promise<string> {
  const server = createServer((socket) => {
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
      for (;;) {
        const [, count = ''] = /^\*(\d+)\r\n/.exec(text) ?? [];
        const lines = text.split('\r\n');
        if (count === '' || lines.length < 2 + 2 * Number(count)) return;
        const name = lines[2]?.toLowerCase();
        text = lines.slice(1 + 2 * Number(count)).join('\r\n');
        if (name === 'info') socket.write('$18\r\nredis_version:8.0\r\n\r\n');
        else socket.write(name?.startsWith('eval') ? reply : '+OK\r\n');
      }
    });
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const array = (...all: readonly (number | string)[]) =>
  `*${all.length}\r\n${all.map((each) => `:${each}\r\n`).join('')}`;

// @proves crashes-11
test.each([
  ['nothing', '*0\r\n'],
  ['too little', array(1, 1, 600, 599, 60)],
  ['a time before now', array(0, 1, 600, 0, 60, -5)],
  ['a text', '+OK\r\n'],
  ['a number', ':1\r\n'],
  ['nil', '$-1\r\n'],
  ['texts', '*6\r\n+a\r\n+b\r\n+c\r\n+d\r\n+e\r\n+f\r\n'],
  ['an error', '-ERR unknown command\r\n'],
  ['another protocol', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
])('a server that answers a count with %s cannot count', async (_, reply) => {
  const quota = createRedisQuota(60, await aFakeRedis(reply), false);
  onTestFinished(() => quota.close());
  await quota.firstAttempt;
  const limits = { key: 600, studio: undefined };
  await expect(quota.consume({ apiKeyId: 'a', studioId: 'b' }, limits)).rejects.toThrow(QuotaUnavailable);
  expect(await quota.fault()).toMatch(/^Redis cannot count requests: /);
});

test('the reply of the script is a valid count', async () => {
  const quota = createRedisQuota(60, await aFakeRedis(array(1, 1, 600, 599, 60, 0, 1_800_000_000_000)), false);
  onTestFinished(() => quota.close());
  await quota.firstAttempt;
  const limits = { key: 600, studio: undefined };
  expect(await quota.consume({ apiKeyId: 'a', studioId: 'b' }, limits)).toMatchObject({
    admitted: true,
    remaining: 599,
  });
  expect(await quota.fault()).toBeUndefined();
});
