import { expect, test } from 'vitest';
import { isNotSent } from '../../sdk/not-sent.ts';

/** An error of `fetch` with this cause. */
const failed = (cause: unknown) => new TypeError('fetch failed', { cause });

const connect = { code: 'ECONNREFUSED', syscall: 'connect' };

test.each([
  ['a name that does not resolve', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }],
  ['a refused connection', connect],
  ['a connection that takes too long', { code: 'UND_ERR_CONNECT_TIMEOUT' }],
  ['an expired certificate', { code: 'CERT_HAS_EXPIRED' }],
  ['two addresses, both refused', { errors: [connect, { code: 'ETIMEDOUT', syscall: 'connect' }] }],
])('%s proves that the request was not sent', (_, cause) => {
  expect(isNotSent(failed(cause))).toBe(true);
});

test.each([
  ['no route while the response is read', { code: 'EHOSTUNREACH', syscall: 'read' }],
  ['a reset connection', { code: 'ECONNRESET', syscall: 'read' }],
  ['two errors, one after the connection', { errors: [connect, { code: 'ECONNRESET', syscall: 'read' }] }],
  ['errors without any', { errors: [] }],
  ['nothing', undefined],
])('%s does not prove it', (_, cause) => {
  expect(isNotSent(failed(cause))).toBe(false);
  expect(isNotSent(cause)).toBe(false);
});
