/** The system calls that Node makes before it has a connection. Any other may fail after the request was sent. */
const CONNECTING = ['getaddrinfo', 'connect'];

/**
 * Codes of errors that happen before the request is sent and name no system call: timeouts, refused certificates and, in
 * Bun, addresses.
 */
const NOT_CONNECTED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];

/**
 * Matches failed TLS handshakes of Node, by the codes of OpenSSL, and of Bun. Omits codes that may come later, such as a server's
 * refusal of the client's certificate.
 */
const HANDSHAKE_FAILED = new RegExp(
  'before secure TLS connection was established|TLS handshake failed|WRONG_VERSION_NUMBER|UNSUPPORTED_PROTOCOL|HANDSHAKE_FAILURE' +
    '|ALERT_PROTOCOL_VERSION|INSUFFICIENT_SECURITY|UNRECOGNIZED_NAME|NO_APPLICATION_PROTOCOL|KEY_TOO_SMALL|MD_TOO_WEAK',
);

/** Matches the message of Deno, which has no codes, when there was no connection. */
const DENO_NOT_CONNECTED = /client error \(Connect\)/;

/** Whether the error of `fetch` proves that the request was not sent, because there was no connection. */
export function isNotSent(error: unknown): boolean {
  return isBeforeConnection(Object(error).cause ?? error);
}

function isBeforeConnection(cause: unknown): boolean {
  const { code, syscall, errors, message } = Object(cause);
  // A host with several addresses has an error for each.
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(isBeforeConnection);
  const isOfTls = HANDSHAKE_FAILED.test(`${code} ${message}`);
  return isOfTls || CONNECTING.includes(syscall) || NOT_CONNECTED.includes(code) || DENO_NOT_CONNECTED.test(message);
}

/** Returns why there is no answer, as far as the error of `fetch` tells. */
export function faultOfConnection(error: unknown) {
  const cause = Object(error).cause ?? error;
  const { code = '', name, syscall, message = '' } = Object(cause?.errors?.[0] ?? cause);
  if (name === 'TimeoutError' || /TIMEOUT$|^ETIMEDOUT$/.test(code)) return 'timed_out';
  if (syscall === 'getaddrinfo' || /dns error|DNS lookup failed/.test(message)) return 'name_unknown';
  if (/^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/.test(code) || /connect error|onnection refused/.test(message)) {
    return 'connection_refused';
  }
  const isOfTls = /^(?:EPROTO$|ERR_SSL)/.test(code) || NOT_CONNECTED.includes(code) || DENO_NOT_CONNECTED.test(message);
  return isOfTls || /TLS/.test(message) ? 'tls_failed' : 'no_answer';
}

/** A response whose `Content-Encoding` this runtime does not decode, or that is not encoded as it says. */
export class UnreadEncoding extends Error {
  constructor(headers: Headers) {
    const [coding = 'unnamed'] = /[\w-]{1,32}/.exec(headers.get('content-encoding') ?? '') ?? [];
    super(`in an encoding that the client cannot read: ${coding}`);
  }
}

/** Matches the errors of runtimes that cannot decode a body. */
const UNDECODED = /Z_(?:DATA|BUF)_ERROR|decompress|zlib|brotli|zstd|unexpected end of file/i;

/** Whether a body could not be read because of its encoding. */
export function isOfEncoding(error: unknown, headers: Headers): boolean {
  const { code, message } = Object(Object(error).cause ?? error);
  return headers.has('content-encoding') && UNDECODED.test(`${code} ${message}`);
}

/**
 * Returns why the service has not answered, without addresses and data: `connection refused (ECONNREFUSED)`, or `403, not of
 * the service` when something else has answered with a status. The same words in all languages; the code is the system's.
 */
export function whyNoAnswer(cause: unknown, status: number | undefined): string {
  if (status !== undefined)
    return `${status}, ${cause instanceof UnreadEncoding ? cause.message : 'not of the service'}`;
  const fault = faultOfConnection(cause);
  if (fault === 'timed_out') return 'timed out';
  const words = fault === 'no_answer' ? 'connection failed' : fault.replace('_', ' ').replace('tls', 'TLS');
  const inner = Object(cause).cause ?? cause;
  const { code, name } = Object(inner?.errors?.[0] ?? inner);
  // Other texts may contain the address.
  const detail = [code, name].find((text) => typeof text === 'string' && /^(?!Error$)\w{1,64}$/.test(text));
  return detail === undefined ? words : `${words} (${detail})`;
}
