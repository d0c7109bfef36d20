import { lines } from '../support/raw-http.ts';
import { LEADS } from '../support/service.ts';

/** A request that is refused before a route, or in place of one. */
export interface Refused {
  readonly what: string;
  /** The codes of the framework and the events of Node's server by which it is. */
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

/** The codes of the framework that no request causes, without `FST_ERR_`, by the reason. */
const CAUSED_BY_NO_REQUEST: Readonly<Record<string, string>> = {
  'the gateway would not start': `OPTIONS_NOT_OBJ QSP_NOT_FN SCHEMA_CONTROLLER_BUCKET_OPT_NOT_FN SCHEMA_ERROR_FORMATTER_NOT_FN
    AJV_CUSTOM_OPTIONS_OPT_NOT_OBJ AJV_CUSTOM_OPTIONS_OPT_NOT_ARR INIT_OPTS_INVALID FORCE_CLOSE_CONNECTIONS_IDLE_NOT_AVAILABLE
    LISTEN_OPTIONS_INVALID REOPENED_CLOSE_SERVER REOPENED_SERVER INSTANCE_ALREADY_LISTENING
    ERROR_HANDLER_NOT_FN ERROR_HANDLER_ALREADY_SET MISSING_MIDDLEWARE
    CTP_ALREADY_PRESENT CTP_INVALID_TYPE CTP_EMPTY_TYPE CTP_INVALID_HANDLER CTP_INVALID_PARSE_TYPE CTP_INSTANCE_ALREADY_STARTED
    DEC_ALREADY_PRESENT DEC_DEPENDENCY_INVALID_TYPE DEC_MISSING_DEPENDENCY DEC_AFTER_START DEC_REFERENCE_TYPE
    HOOK_INVALID_TYPE HOOK_INVALID_HANDLER HOOK_INVALID_ASYNC_HANDLER HOOK_NOT_SUPPORTED HOOK_TIMEOUT
    LOG_INVALID_DESTINATION LOG_INVALID_LOGGER LOG_INVALID_LOGGER_INSTANCE LOG_INVALID_LOGGER_CONFIG
    LOG_LOGGER_AND_LOGGER_INSTANCE_PROVIDED LOG_INVALID_LOG_CONTROLLER
    SCH_MISSING_ID SCH_ALREADY_PRESENT SCH_CONTENT_MISSING_SCHEMA SCH_DUPLICATE SCH_VALIDATION_BUILD SCH_SERIALIZATION_BUILD
    SCH_RESPONSE_SCHEMA_NOT_NESTED_2XX DUPLICATED_ROUTE INVALID_URL ROUTE_OPTIONS_NOT_OBJ ROUTE_DUPLICATED_HANDLER
    ROUTE_HANDLER_NOT_FN ROUTE_MISSING_HANDLER ROUTE_METHOD_INVALID ROUTE_METHOD_NOT_SUPPORTED ROUTE_LOG_LEVEL_INVALID
    ROUTE_BODY_VALIDATION_SCHEMA_NOT_SUPPORTED ROUTE_BODY_LIMIT_OPTION_NOT_INT ROUTE_HANDLER_TIMEOUT_OPTION_NOT_INT
    PLUGIN_VERSION_MISMATCH PLUGIN_NOT_PRESENT_IN_INSTANCE PLUGIN_INVALID_ASYNC_HANDLER PLUGIN_DEPENDENCY_NOT_REGISTERED
    PLUGIN_CALLBACK_NOT_FN PLUGIN_NOT_VALID ROOT_PLG_BOOTED PARENT_PLUGIN_BOOTED PLUGIN_TIMEOUT`,
  'no code of the gateway uses its response so': `DEC_UNDECLARED REP_INVALID_PAYLOAD_TYPE REP_RESPONSE_BODY_CONSUMED
    REP_READABLE_STREAM_LOCKED REP_ALREADY_SENT REP_SENT_VALUE SEND_INSIDE_ONERR SEND_UNDEFINED_ERR BAD_STATUS_CODE
    BAD_TRAILER_NAME BAD_TRAILER_VALUE FAILED_ERROR_SERIALIZATION MISSING_SERIALIZATION_FN
    MISSING_CONTENTTYPE_SERIALIZATION_FN REQ_INVALID_VALIDATION_INVOCATION`,
  'no route has a schema of requests, a timeout, a constraint, or rewrites addresses': `VALIDATION HANDLER_TIMEOUT
    ASYNC_CONSTRAINT ROUTE_REWRITE_NOT_STR`,
  'a parameter of its length is in no head': 'MAX_PARAM_LENGTH',
  'the router has each method of HTTP, and a handler for what it does not find': 'NOT_FOUND',
  'bodies are read by one route, of any media type, as bytes': `CTP_INVALID_MEDIA_TYPE CTP_EMPTY_JSON_BODY
    CTP_INVALID_JSON_BODY ROUTE_MISSING_CONTENT_TYPE ROUTE_MISSING_CONTENT`,
  "Node's parser ends a body at its length": 'CTP_INVALID_CONTENT_LENGTH',
};

/** All codes of the framework, caused and not. */
export const ALL_CODES: readonly string[] = [
  ...new Set(REFUSED.flatMap(({ by }) => by).filter((by) => by.startsWith('FST_'))),
  ...Object.values(CAUSED_BY_NO_REQUEST).flatMap((codes) => codes.split(/\s+/).map((code) => `FST_ERR_${code}`)),
];
