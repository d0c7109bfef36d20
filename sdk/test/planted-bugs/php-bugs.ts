import type { ClientBug } from './typescript-bugs.ts';

const CURL = 'sdk/php/src/Transport/CurlTransport.php';
const ENCODING = 'sdk/php/src/Internal/Encoding.php';
const SENDER = 'sdk/php/src/Internal/Sender.php';

export const PHP_BUGS: readonly ClientBug[] = [
  {
    name: 'the unknown outcome of an earlier attempt is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDER, find: '($isOpen && !$outcome->settlesOutcome()) ||', put: '' }],
  },
  {
    name: 'a fault of a header counts as one of the data',
    caughtBy: 'written/unknown-stays-unknown-after-faults-that-are-not-of-the-data',
    says: 'the report has written "no", not "unknown"',
    patches: [
      {
        file: 'sdk/php/src/Internal/Problem.php',
        find: '&& array_intersect_key($fields, array_flip(Outcomes::FIELDS_NOT_OF_DATA)) === []',
        put: '',
      },
    ],
  },
  {
    name: 'a response that something in between has compressed is not decoded',
    caughtBy: 'encodings/gzip-unasked',
    says: 'attempt 2 must not be sent',
    patches: [{ file: ENCODING, find: "self::accepted() !== 'gzip'", put: 'true' }],
  },
  {
    name: 'a response is decoded without a bound',
    caughtBy: 'encodings/a-few-bytes-for-very-many',
    says: 'Allowed memory size',
    patches: [{ file: ENCODING, find: 'strlen($body) > Response::MAX_BYTES', put: 'false' }],
  },
  {
    name: 'a certificate that is not trusted is reported as possibly written',
    caughtBy: 'written/no-when-the-certificate-is-not-trusted',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: CURL, find: 'CURLE_SSL_CACERT, CURLE_SSL_PEER_CERTIFICATE,', put: '' }],
  },
  {
    name: 'truncated headers are accepted as a response',
    caughtBy: 'lost-replies/refusal-cut-at-every-byte',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: CURL, find: '!$isHeadWhole || $status < 200', put: 'false' }],
  },
  {
    name: 'curl follows redirects',
    caughtBy: 'proxies/redirects',
    says: 'attempt 2 must not be sent',
    patches: [
      {
        file: CURL,
        find: 'CURLOPT_HTTPHEADER => $lines,',
        put: 'CURLOPT_HTTPHEADER => $lines, CURLOPT_FOLLOWLOCATION => true,',
      },
    ],
  },
  {
    name: 'a key that is no UUID is sent',
    caughtBy: 'mistakes/a-key-that-is-no-uuid',
    says: 'not refused',
    patches: [{ file: 'sdk/php/src/LeadIntakeClient.php', find: 'if (Uuid::from($key) === null)', put: 'if (false)' }],
  },
];

/** Faults of the form in plain PHP; the first two tests of every recipe catch them (`test/support/recipe-situations.ts`). */
export const PHP_FORM_BUGS: Readonly<Record<'thanks' | 'spaces', Omit<ClientBug, 'caughtBy'>>> = {
  thanks: {
    name: 'visitors are thanked for what the service refuses',
    says: 'to deeply equal',
    patches: [{ file: 'public/form.php', find: '$capture->faults() as', put: '[] as' }],
  },
  spaces: {
    name: 'a space around the address is a fault',
    says: 'to contain',
    patches: [{ file: 'public/form.php', find: 'Contact::email(trim($email))', put: 'Contact::email($email)' }],
  },
};
