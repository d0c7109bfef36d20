import { expect, test } from 'vitest';
import { isNotSent } from '../not-sent.ts';

/** Returns a `fetch` error with this cause. */
const failed = (cause: unknown) => new TypeError('fetch failed', { cause });

const connect = { code: 'ECONNREFUSED', syscall: 'connect' };

test.each([
  ['a name that does not resolve', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }],
  ['a refused connection', connect],
  ['a connection that takes too long', { code: 'UND_ERR_CONNECT_TIMEOUT' }],
  ['an expired certificate', { code: 'CERT_HAS_EXPIRED' }],
  ['a port without TLS', { code: 'ERR_SSL_WRONG_VERSION_NUMBER' }],
  ['a server with another version of TLS', { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' }],
  ['a cut within the TLS handshake', new Error('socket disconnected before secure TLS connection was established')],
  ['a failure to connect to both addresses', { errors: [connect, { code: 'ETIMEDOUT', syscall: 'connect' }] }],
])('%s proves that the request was not sent', (_, cause) => {
  expect(isNotSent(failed(cause))).toBe(true);
});

test.each([
  ['a lost route while the response is read', { code: 'EHOSTUNREACH', syscall: 'read' }],
  ['a reset connection', { code: 'ECONNRESET', syscall: 'read' }],
  ['a late refusal of the client certificate', { code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED' }],
  ['a TLS error in the middle of a response', { code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' }],
  ['two errors, the second after the connection', { errors: [connect, { code: 'ECONNRESET', syscall: 'read' }] }],
  ['an empty list of errors', { errors: [] }],
  ['an unknown error', undefined],
])('after %s, the request may have been sent', (_, cause) => {
  expect(isNotSent(failed(cause))).toBe(false);
  expect(isNotSent(cause)).toBe(false);
});
