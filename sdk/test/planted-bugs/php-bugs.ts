import type { ClientBug } from './typescript-bugs.ts';

const CURL = 'sdk/php/src/Transport/CurlTransport.php';
const ENCODING = 'sdk/php/src/Internal/Encoding.php';

export const PHP_BUGS: readonly ClientBug[] = [
  {
    name: 'a response that an intermediary has compressed is not decoded',
    caughtBy: 'encodings/gzip-unasked',
    says: 'attempt 2 must not be sent',
    patches: [{ file: ENCODING, find: "self::accepted() !== 'gzip'", put: 'true' }],
  },
  {
    name: 'a response is decoded without a limit',
    caughtBy: 'encodings/a-few-bytes-for-very-many',
    says: 'Allowed memory size',
    patches: [{ file: ENCODING, find: 'strlen($body) > Response::MAX_BYTES', put: 'false' }],
  },
  {
    name: 'an untrusted certificate is reported as possibly written',
    caughtBy: 'written/no-when-the-certificate-is-not-trusted',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: CURL, find: 'CURLE_SSL_CACERT, CURLE_SSL_PEER_CERTIFICATE,', put: '' }],
  },
  {
    name: 'truncated headers are accepted as a response',
    caughtBy: 'lost-replies/refusal-cut-at-every-byte',
    says: 'only 1 of 2 attempts arrived',
    patches: [{ file: CURL, find: '!$isHeadWhole || $status < 200', put: 'false' }],
  },
  {
    name: 'a key that is not a UUID is sent',
    caughtBy: 'mistakes/a-key-that-is-no-uuid',
    says: 'not refused',
    patches: [{ file: 'sdk/php/src/LeadIntakeClient.php', find: 'if (Uuid::from($key) === null)', put: 'if (false)' }],
  },
];
