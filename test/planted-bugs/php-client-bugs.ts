import type { ClientBug, ClientPatch } from './client-bugs.ts';

const CURL = 'sdk/php/src/Transport/CurlTransport.php';
const PDO_DATABASE = 'sdk/php/src/Outbox/PdoDatabase.php';

export const PHP_BUGS: readonly ClientBug[] = [
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
    name: 'delivery inside an open transaction is allowed',
    caughtBy: 'refuses invalid calls before anything is written',
    says: 'to deeply equal',
    patches: [{ file: PDO_DATABASE, find: 'Dialect::SQLite => !$this->canBegin(),', put: 'Dialect::SQLite => false,' }],
  },
];
