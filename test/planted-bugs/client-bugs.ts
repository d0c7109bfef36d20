/** A faulty variant of a client, and the conversation that must fail on it. */
export interface ClientBug {
  /** The fault. */
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

const CLIENT = 'sdk/client.ts';
const SEND = 'sdk/send.ts';
const ATTEMPT = 'sdk/attempt.ts';
const CONFIGURATION = 'sdk/configuration.ts';
const NOT_SENT = 'sdk/not-sent.ts';
const OUTCOMES = 'sdk/outcomes.ts';

const SENDS = 'const last = await attempt(request, fetch, AbortSignal.any(limits));';

export const TYPESCRIPT_BUGS: readonly ClientBug[] = [
  {
    name: 'a mistyped key is accepted',
    caughtBy: 'configuration/not-a-key',
    says: 'not refused',
    patches: [{ file: CONFIGURATION, find: "|| !hasChecksum(Buffer.from(apiKey.slice(4), 'base64url'))", put: '' }],
  },
  {
    name: 'a response of any length is read',
    caughtBy: 'answers/an-answer-that-is-too-long',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: 'if (length > MAX_RESPONSE_BYTES) return undefined;', put: '' }],
  },
  {
    name: 'a lead without an id is accepted',
    caughtBy: 'proxies/a-lead-without-an-id',
    says: 'only 1 of 2 attempts have come',
    patches: [
      { file: ATTEMPT, find: 'isLead(body?.lead) && isOf(capture, body.lead)', put: 'body?.lead instanceof Object' },
    ],
  },
  {
    name: 'the lead of another request is accepted',
    caughtBy: 'proxies/the-lead-of-another-request',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: '&& isOf(capture, body.lead)', put: '' }],
  },
  {
    name: 'each attempt has its own idempotency key',
    caughtBy: 'idempotency-keys/one-key-and-one-body-for-all-attempts',
    says: 'has another Idempotency-Key than an attempt before',
    patches: [
      { file: SEND, find: SENDS, put: `request.headers.set('idempotency-key', crypto.randomUUID()); ${SENDS}` },
    ],
  },
  {
    name: 'all creations share one idempotency key',
    caughtBy: 'idempotency-keys/a-key-for-each-creation',
    says: 'has the Idempotency-Key of a call before',
    patches: [{ file: CLIENT, find: '= randomUUID()', put: "= '5f0f9b1c-6c1e-4c55-9a5e-3d2b7f1c8a10'" }],
  },
  {
    name: 'the idempotency key of the caller is ignored',
    caughtBy: 'idempotency-keys/the-callers-own-key',
    says: 'has Idempotency-Key',
    patches: [{ file: CLIENT, find: "'idempotency-key', idempotencyKey)", put: "'idempotency-key', randomUUID())" }],
  },
  {
    name: 'the body changes with each attempt',
    caughtBy: 'idempotency-keys/one-key-and-one-body-for-all-attempts',
    says: 'has a body that is not the one before byte for byte',
    patches: [
      {
        file: SEND,
        find: 'attempt(request, fetch',
        put: "attempt({ ...request, ...(request.body && { body: request.body + ' '.repeat(attempts) }) }, fetch",
      },
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
    name: 'a refusal is reported as possibly written',
    caughtBy: 'repeating/refusals-are-not-repeated',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: 'status >= FAILING_FROM_STATUS && !', put: 'status >= 400 && !' }],
  },
  {
    name: 'a refusal because the quota cannot be counted is reported as possibly written',
    caughtBy: 'written/no-when-the-quota-is-used-up',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: '&& !CODES_WRITING_NOTHING.includes(code)', put: '' }],
  },
  {
    name: 'a 401 settles the unknown outcome of an earlier attempt',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [
      {
        file: ATTEMPT,
        find: 'SETTLING_CODES.includes(code) ||',
        put: 'attempt.problem.status === 401 || SETTLING_CODES.includes(code) ||',
      },
    ],
  },
  {
    name: 'any 400 settles the unknown outcome of an earlier attempt',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: 'hasFields &&', put: '' }],
  },
  {
    name: 'a certificate that is not trusted is reported as possibly written',
    caughtBy: 'written/no-when-the-certificate-is-not-trusted',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: NOT_SENT, find: '|| NOT_CONNECTED.includes(code)', put: '' }],
  },
  {
    name: 'the unknown outcome of an earlier attempt is forgotten',
    caughtBy: 'written/unknown-stays-unknown-after-a-failure',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SEND, find: '(isOpen && !settlesOutcome(last)) ||', put: '' }],
  },
  {
    name: 'a refusal of the data does not settle an unknown outcome',
    caughtBy: 'written/settled-by-a-refusal-of-the-data',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: SEND, find: '(isOpen && !settlesOutcome(last))', put: 'isOpen' }],
  },
  {
    name: 'the media type of a response is not checked',
    caughtBy: 'proxies/the-right-json-as-a-page',
    says: 'only 1 of 3 attempts have come',
    patches: [
      { file: ATTEMPT, find: 'switch (mediaType.trim().toLowerCase())', put: "switch ('application/json' as string)" },
    ],
  },
  {
    name: 'any JSON with a successful status is accepted as a lead',
    caughtBy: 'proxies/json-of-something-else',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: 'status < 300 && isAsked', put: 'status < 300 && body' }],
  },
  {
    name: 'a problem without a code is accepted',
    caughtBy: 'written/not-settled-by-a-proxy',
    says: 'the report has kind "problem", not "no-answer"',
    patches: [{ file: ATTEMPT, find: "typeof body?.code === 'string'", put: 'body' }],
  },
  {
    name: 'the status in a problem overrides the status of its response',
    caughtBy: 'proxies/a-problem-without-a-status',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: 'problemIn(body, status)', put: 'problemIn(body, Number(body.status))' }],
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
    name: 'a 429 is not retried',
    caughtBy: 'repeating/temporary-failures-are-repeated',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: OUTCOMES, find: '[408, 429]', put: '[408]' }],
  },
  {
    name: 'the backoff does not double',
    caughtBy: 'repeating/back-off-doubles',
    says: 'ms, not 2000 or more',
    patches: [{ file: SEND, find: 'FIRST_BACKOFF_MS * 2 ** (attempts - 1)', put: 'FIRST_BACKOFF_MS' }],
  },
  {
    name: 'Retry-After is ignored',
    caughtBy: 'retry-after/of-a-quota',
    says: 'ms, not 3000 or more',
    patches: [{ file: SEND, find: 'retryDelayMs(attempts, retryAfterOf(last))', put: 'retryDelayMs(attempts)' }],
  },
  {
    name: 'a date in Retry-After is compared with the clock',
    caughtBy: 'retry-after/not-a-whole-number',
    says: 'only 1 of 2 attempts have come',
    patches: [
      {
        file: ATTEMPT,
        find: '/^\\d+$/.test(value) ? Number(value) : undefined',
        put: '/^\\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000 || undefined',
      },
    ],
  },
  {
    name: 'a wait longer than the longest timer ends immediately',
    caughtBy: 'retry-after/longer-than-a-timer',
    says: 'not 3000000000 or more',
    patches: [
      { file: SEND, find: 'sleep(Math.min(restMs, MAX_TIMER_MS)', put: 'sleep(restMs' },
      { file: SEND, find: 'restMs -= MAX_TIMER_MS', put: 'restMs = 0' },
    ],
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
    name: 'the timeout of an attempt is that of the whole call',
    caughtBy: 'lost-replies/stalled-in-the-middle',
    says: 'only 1 of 2 attempts have come',
    patches: [
      {
        file: SEND,
        find: 'Math.min(attemptTimeoutMs, Math.max(0, Math.ceil(end - performance.now())))',
        put: 'deadlineMs',
      },
    ],
  },
  {
    name: 'an attempt begins with too little time left',
    caughtBy: 'deadlines/too-late-for-another-attempt',
    says: 'has not reported within 20000 ms',
    patches: [{ file: SEND, find: '+ MIN_ATTEMPT_MS', put: '- MIN_ATTEMPT_MS' }],
  },
  {
    name: 'the deadline depends on the clock of the machine',
    caughtBy: 'clocks/set-forward',
    says: 'only 1 of 2 attempts have come',
    patches: [
      { file: SEND, find: 'const end = performance.now() + deadlineMs;', put: 'const end = Date.now() + deadlineMs;' },
      { file: SEND, find: 'isInTime = performance.now()', put: 'isInTime = Date.now()' },
    ],
  },
  {
    name: 'a cancellation has no effect until the next attempt',
    caughtBy: 'cancelling/while-the-next-attempt-is-awaited',
    says: 'has not reported within 13000 ms',
    patches: [{ file: SEND, find: 'await wait(waitMs, signal)', put: 'await wait(waitMs, undefined)' }],
  },
  {
    name: 'the id of the open lead is not reported',
    caughtBy: 'problems/the-open-lead',
    says: 'the report has existingLeadId nothing',
    patches: [
      {
        file: SEND,
        find: 'new LeadAlreadyOpenError(leadIn(last.headers),',
        put: 'new LeadAlreadyOpenError(undefined,',
      },
    ],
  },
  {
    name: 'ids in paths are not percent-encoded',
    caughtBy: 'reading/an-id-of-any-text',
    says: 'has the path to',
    patches: [{ file: CLIENT, find: 'encodeURIComponent(id)', put: 'id' }],
  },
  {
    name: 'the cursor is never sent',
    caughtBy: 'reading/all-pages',
    says: 'of page 2 has the query',
    patches: [
      { file: CLIENT, find: 'listLeads({ ...options, ...(cursor && { cursor }) })', put: 'listLeads(options)' },
    ],
  },
];
