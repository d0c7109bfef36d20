import { lines } from '../support/raw-http.ts';
import { LEADS } from '../support/service.ts';

/** A request that is refused before or instead of a route. */
export interface Refused {
  readonly what: string;
  /** The codes of the framework and the events of Node's server that cause the refusal. */
  readonly by: readonly string[];
  readonly status: number;
  readonly code: string;
  /** Sent whole; with `ends`, the client ends its side after it. */
  readonly request: (secret: string) => string;
  readonly ends?: boolean;
}

const HOST = 'Host: leads.example.test';
const GET = `GET ${LEADS} HTTP/1.1`;
const auth = (secret: string) => `Authorization: Bearer ${secret}`;
const post = (...more: string[]) => lines(`POST ${LEADS} HTTP/1.1`, HOST, ...more, '');
const chunked = (secret: string) => post(auth(secret), 'Content-Type: application/json', 'Transfer-Encoding: chunked');

const invalid = (by: string, what: string, request: Refused['request'], status = 400): Refused => ({
  what,
  by: [by],
  status,
  code: 'integration_invalid_request',
  request,
});
const notHttp = (code: string, what: string, request: Refused['request'], status?: number) =>
  invalid(`clientError ${code}`, what, request, status);
const other = (by: string[], status: number, code: string, what: string, request: Refused['request']): Refused => ({
  what,
  by,
  status,
  code,
  request,
});

/** Every way in which the framework, Node's server and its parser refuse a request before a route does. */
export const REFUSED: readonly Refused[] = [
  invalid('FST_ERR_BAD_URL', 'broken percent-encoding', () => lines('GET /%zz HTTP/1.1', HOST, '')),
  invalid('FST_ERR_CTP_BODY_TOO_LARGE', 'a length beyond the bound', (secret) =>
    post(auth(secret), 'Content-Type: application/json', 'Content-Length: 99999'),
  ),
  invalid(
    'FST_ERR_CTP_BODY_TOO_LARGE',
    'a chunk beyond the bound',
    (secret) => `${chunked(secret)}ffff\r\n${'x'.repeat(0xffff)}\r\n0\r\n\r\n`,
  ),
  invalid('checkExpectation', 'an unknown expectation', () => lines(GET, HOST, 'Expect: x', '')),
  other(['connect'], 404, 'route_not_found', 'CONNECT', () => lines('CONNECT a:1 HTTP/1.1', HOST, '')),
  { ...invalid('', 'a method of RTSP', () => lines(`PLAY ${LEADS} RTSP/1.0`, HOST, '')), by: [] },
  ...['HPE_INVALID_METHOD FROB', 'HPE_INVALID_CONSTANT PLAY'].map((codeAndMethod) => {
    const [code, method] = codeAndMethod.split(' ');
    const request = () => lines(`${method} ${LEADS} HTTP/1.1`, HOST, '');
    return other([`clientError ${code}`], 405, 'method_not_allowed', `the method ${method}`, request);
  }),
  notHttp('HPE_INVALID_METHOD', 'a greeting of another protocol', () => 'EHLO x\r\n\r\n'),
  notHttp('HPE_PAUSED_H2_UPGRADE', 'an HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  notHttp('HPE_INVALID_VERSION', 'another version', () => lines('GET / HTTP/3.7', HOST, '')),
  notHttp('HPE_INVALID_CONSTANT', 'a blank in the address', () => lines('GET / x HTTP/1.1', HOST, '')),
  notHttp('HPE_INVALID_URL', 'a control character in the address', () => lines('GET \u0001 HTTP/1.1', HOST, '')),
  notHttp('HPE_INVALID_HEADER_TOKEN', 'a header without a colon', () => lines(GET, HOST, 'Nonsense', '')),
  notHttp('HPE_CR_EXPECTED', 'a line feed alone', () => `${GET}\r\n${HOST}\r\nX: a\nY: b\r\n\r\n`),
  notHttp('HPE_LF_EXPECTED', 'a carriage return alone', () => `${GET}\r\n${HOST}\r\nX: a\rY: b\r\n\r\n`),
  notHttp('HPE_UNEXPECTED_SPACE', 'a blank before the first header', () => lines(GET, ` ${HOST}`, '')),
  notHttp('HPE_INVALID_CONTENT_LENGTH', 'a length that is no number', () => post('Content-Length: x')),
  notHttp('HPE_UNEXPECTED_CONTENT_LENGTH', 'two lengths', () => post('Content-Length: 1', 'Content-Length: 2')),
  notHttp('HPE_INVALID_TRANSFER_ENCODING', 'an unknown coding', () => post('Transfer-Encoding: x')),
  notHttp('HPE_INVALID_CHUNK_SIZE', 'a size that is no number', (secret) => `${chunked(secret)}zz\r\n`),
  notHttp('HPE_STRICT', 'a chunk longer than its size', (secret) => `${chunked(secret)}1\r\n{}\r\n`),
  notHttp(
    'HPE_CHUNK_EXTENSIONS_OVERFLOW',
    'a long extension of a chunk',
    (secret) => `${chunked(secret)}1;${'x'.repeat(20_000)}\r\n{\r\n0\r\n\r\n`,
  ),
  notHttp('HPE_HEADER_OVERFLOW', 'a long head', () => lines(GET, HOST, `X: ${'x'.repeat(20_000)}`, ''), 431),
  { ...notHttp('HPE_INVALID_EOF_STATE', 'an end within the head', () => lines(GET, HOST)), ends: true },
  notHttp('ERR_HTTP_REQUEST_TIMEOUT', 'a head that does not end', () => lines(GET, HOST), 408),
  other(['clientError HPE_CLOSED_CONNECTION'], 401, 'integration_key_invalid', 'bytes after the last request', () =>
    lines(GET, HOST, 'Connection: close', '').concat('more'),
  ),
];
