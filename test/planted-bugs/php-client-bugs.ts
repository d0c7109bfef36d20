import type { ClientBug } from './client-bugs.ts';

const CURL = 'sdk/php/src/Transport/CurlTransport.php';
const SENDER = 'sdk/php/src/Internal/Sender.php';

export const PHP_BUGS: readonly ClientBug[] = [
  {
    name: 'what an earlier attempt has left open is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SENDER, find: '($isOpen && !$outcome->settlesOutcome()) ||', put: '' }],
  },
  {
    name: 'headers that break off are an answer',
    caughtBy: 'lost-replies/refusal-cut-at-every-byte',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: CURL, find: '!$isHeadWhole || $status < 200', put: 'false' }],
  },
  {
    name: 'curl follows redirects',
    caughtBy: 'proxies/redirect-307',
    says: 'attempt 2 was not to be sent any more',
    patches: [
      {
        file: CURL,
        find: 'CURLOPT_RETURNTRANSFER => true,',
        put: 'CURLOPT_RETURNTRANSFER => true, CURLOPT_FOLLOWLOCATION => true,',
      },
    ],
  },
  {
    name: 'the deadline is held by the clock of the machine',
    caughtBy: 'clocks/set-forward',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: SENDER, find: 'hrtime(true) / 1e9', put: 'microtime(true)' }],
  },
];
