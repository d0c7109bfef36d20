/** A faulty variant of a client, and the conversation that must fail on it. */
export interface ClientBug {
  /** The fault, as a clause that completes a title: "the suite catches that …". */
  readonly name: string;
  readonly patches: readonly ClientPatch[];
  readonly caughtBy: string;
  /** A part of the failure message. */
  readonly says: string;
}

/** A fault in one place of a client, in any language. */
export interface ClientPatch {
  readonly file: string;
  /** Occurs in the file exactly once, with any white space between its words. */
  readonly find: string;
  readonly put: string;
}

const SEND = 'sdk/send.ts';
const ATTEMPT = 'sdk/attempt.ts';

const SENDS = 'const last = await attempt(request, fetch, AbortSignal.any(limits));';

export const TYPESCRIPT_BUGS: readonly ClientBug[] = [
  {
    name: 'each attempt has its own idempotency key',
    caughtBy: 'idempotency-keys/one-key-and-one-body-for-all-attempts',
    says: 'has another Idempotency-Key than the first attempt',
    patches: [
      { file: SEND, find: SENDS, put: `request.headers.set('idempotency-key', crypto.randomUUID()); ${SENDS}` },
    ],
  },
  {
    name: 'a lost reply is reported as not written',
    caughtBy: 'written/unknown-after-a-lost-reply',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: 'return !isNotSent(attempt.cause);', put: 'return false;' }],
  },
  {
    name: 'a failure to connect is reported as possibly written',
    caughtBy: 'written/no-when-the-connection-is-refused',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: '!isNotSent(attempt.cause)', put: 'true' }],
  },
  {
    name: 'a failed TLS handshake is reported as possibly written',
    caughtBy: 'written/no-when-the-handshake-fails',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: 'sdk/not-sent.ts', find: 'return isOfTls || CONNECTING', put: 'return CONNECTING' }],
  },
  {
    name: 'the unknown outcome of an earlier attempt is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-a-failure',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SEND, find: '(isOpen && !settlesOutcome(last)) ||', put: '' }],
  },
  {
    name: 'a faulty header counts as faulty data',
    caughtBy: 'written/unknown-stays-unknown-after-faults-that-are-not-of-the-data',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: '&& !fields.some((field) => FIELDS_NOT_OF_DATA.includes(field))', put: '' }],
  },
  {
    name: 'the media type of a response is not checked',
    caughtBy: 'proxies/the-right-json-as-a-page',
    says: 'only 1 of 3 attempts arrived',
    patches: [
      { file: ATTEMPT, find: 'switch (mediaType.trim().toLowerCase())', put: "switch ('application/json' as string)" },
    ],
  },
  {
    name: 'a problem with any code counts as one from the service',
    caughtBy: 'proxies/a-problem-with-another-code',
    says: 'the report has kind "problem", not "no-answer"',
    patches: [
      { file: ATTEMPT, find: 'PROBLEM_CODES.includes(body.code as string)', put: "typeof body.code === 'string'" },
    ],
  },
  {
    name: 'redirects are followed',
    caughtBy: 'proxies/redirects',
    says: 'attempt 2 must not be sent',
    patches: [{ file: ATTEMPT, find: "redirect: 'manual'", put: "redirect: 'follow'" }],
  },
  {
    name: 'refusals are retried',
    caughtBy: 'repeating/refusals-are-not-repeated',
    says: 'attempt 2 must not be sent',
    patches: [{ file: ATTEMPT, find: 'TEMPORARY_STATUSES.includes(status) ||', put: 'status >= 400 ||' }],
  },
  {
    name: 'Retry-After is ignored',
    caughtBy: 'retry-after/of-a-quota',
    says: 'ms, not 3000 or more',
    patches: [{ file: SEND, find: 'retryDelayMs(attempts, parseRetryAfter(last))', put: 'retryDelayMs(attempts)' }],
  },
  {
    name: 'the deadline is ignored',
    caughtBy: 'deadlines/every-connection-breaks',
    says: 'has not reported within 14000 ms',
    patches: [
      { file: SEND, find: 'const end = performance.now() + deadlineMs;', put: 'const end = deadlineMs * 1e9;' },
    ],
  },
  {
    name: "the deadline depends on the machine's clock",
    caughtBy: 'clocks/set-forward',
    says: 'only 1 of 2 attempts arrived',
    patches: [
      { file: SEND, find: 'const end = performance.now() + deadlineMs;', put: 'const end = Date.now() + deadlineMs;' },
      { file: SEND, find: 'isInTime = performance.now()', put: 'isInTime = Date.now()' },
    ],
  },
  {
    name: 'a check takes any refused creation for a granted scope',
    caughtBy: 'checking/not-as-documented',
    says: '"code":"create_granted"',
    patches: [{ file: 'sdk/check.ts', find: '&& areOfData(faulty)', put: '' }],
  },
];
