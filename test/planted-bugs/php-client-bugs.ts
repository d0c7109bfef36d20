import type { ClientBug, ClientPatch } from './client-bugs.ts';

const CURL = 'sdk/php/src/Transport/CurlTransport.php';
const PDO_DATABASE = 'sdk/php/src/Outbox/PdoDatabase.php';
const TABLE = 'sdk/php/src/Outbox/Internal/Table.php';
const OUTBOX = 'sdk/php/src/Outbox/Outbox.php';
const SENDER = 'sdk/php/src/Internal/Sender.php';

export const PHP_BUGS: readonly ClientBug[] = [
  {
    name: 'the unknown outcome of an earlier attempt is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDER, find: '($isOpen && !$outcome->settlesOutcome()) ||', put: '' }],
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
];

/** Faults of the form in plain PHP, and of what it uses; `caughtBy` is what every recipe is tested for (`test/support/recipe-situations.ts`). */
export const PHP_FORM_BUGS: readonly ClientBug[] = [
  {
    name: 'visitors are thanked for what the service refuses',
    caughtBy: 'what the service refuses is said before any thanks; what was entered stays in the form',
    says: 'to deeply equal',
    patches: [{ file: 'public/form.php', find: '$capture->faults() as', put: '[] as' }],
  },
  {
    name: 'a form that is sent twice is two leads',
    caughtBy: 'a double click',
    says: 'to deeply equal',
    patches: [{ file: 'public/form.php', find: 'Outbox::keyFor("contact $page", $capture)', put: 'null' }],
  },
  {
    name: 'a page is bound to its first visit',
    caughtBy: 'a cached page an hour later, when the lead is closed',
    says: 'to deeply equal',
    patches: [
      {
        file: 'vendor/lead-intake/client/src/Outbox/Outbox.php',
        find: 'intdiv($submittedAt?->getTimestamp() ?? time(), 3600)',
        put: '0',
      },
    ],
  },
];

/** Functions of the client for PHP whose arguments traces show; the test of secrets catches each. */
export const PHP_SECRET_BUGS: readonly ClientPatch[] = [
  { file: 'src/LeadIntakeClient.php', find: '#[\\SensitiveParameter] string $apiKey', put: 'string $apiKey' },
  {
    file: 'src/Outbox/Outbox.php',
    find: 'add(#[\\SensitiveParameter] LeadCapture|array $capture',
    put: 'add(LeadCapture|array $capture',
  },
];

/** Faults of the outbox for PHP; `caughtBy` is the title of a test of its suite. */
export const PHP_OUTBOX_BUGS: readonly ClientBug[] = [
  {
    name: 'errors of PDO in its silent mode are ignored',
    caughtBy: 'loses nothing silently, whatever the settings of PDO',
    says: 'bool',
    patches: [
      {
        file: PDO_DATABASE,
        find: '$this->pdo->setAttribute(\\PDO::ATTR_ERRMODE, \\PDO::ERRMODE_EXCEPTION);',
        put: '',
      },
    ],
  },
  {
    name: 'data is kept after delivery',
    caughtBy: 'does what its README shows: stores, sends, and lists what needs attention',
    says: 'refused since',
    patches: [{ file: TABLE, find: "'state = ?, lead_id = ?, capture = NULL,", put: "'state = ?, lead_id = ?," }],
  },
  {
    name: 'other data for a waiting idempotency key is ignored',
    caughtBy: 'refuses invalid calls before anything is written',
    says: 'to deeply equal',
    patches: [{ file: OUTBOX, find: '!CaptureJson::areSame($json, $stored)', put: 'false' }],
  },
  {
    name: 'delivery inside an open transaction is allowed',
    caughtBy: 'refuses invalid calls before anything is written',
    says: 'to deeply equal',
    patches: [{ file: PDO_DATABASE, find: 'Dialect::SQLite => !$this->canBegin(),', put: 'Dialect::SQLite => false,' }],
  },
  {
    name: 'a response of any length is read',
    caughtBy: 'limits the length of a response',
    says: 'Command failed',
    patches: [{ file: CURL, find: '> Response::MAX_BYTES', put: '> PHP_INT_MAX' }],
  },
];
