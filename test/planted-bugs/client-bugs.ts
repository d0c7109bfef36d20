/** A faulty variant of a client, and the conversation that must not let it pass. */
export interface ClientBug {
  /** What the variant does wrong. */
  readonly name: string;
  readonly patches: readonly ClientPatch[];
  readonly caughtBy: string;
  /** What the suite says of it, in part. */
  readonly says: string;
}

/** A fault in one place of a client, in any language. */
export interface ClientPatch {
  readonly file: string;
  /** Is in the file exactly once, whatever white space is between its words. */
  readonly find: string;
  readonly put: string;
}

const CLIENT = 'sdk/client.ts';
const SEND = 'sdk/send.ts';
const ATTEMPT = 'sdk/attempt.ts';

const SENDS = 'const last = await attempt(request, fetch, AbortSignal.any(limits));';

export const TYPESCRIPT_BUGS: readonly ClientBug[] = [
  {
    name: 'an answer is read however long it is',
    caughtBy: 'answers/an-answer-that-is-too-long',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: 'if (length > MAX_RESPONSE_BYTES) return undefined;', put: '' }],
  },
  {
    name: 'anything that is called a lead is one',
    caughtBy: 'proxies/a-lead-without-an-id',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: 'isLead(body?.lead);', put: 'body?.lead instanceof Object;' }],
  },
  {
    name: 'each attempt has a key of its own',
    caughtBy: 'idempotency-keys/one-key-and-one-body-for-all-attempts',
    says: 'has another Idempotency-Key than an attempt before',
    patches: [
      { file: SEND, find: SENDS, put: `request.headers.set('idempotency-key', crypto.randomUUID()); ${SENDS}` },
    ],
  },
  {
    name: 'all creations have one key',
    caughtBy: 'idempotency-keys/a-key-for-each-creation',
    says: 'has the Idempotency-Key of a call before',
    patches: [{ file: CLIENT, find: '= randomUUID()', put: "= '5f0f9b1c-6c1e-4c55-9a5e-3d2b7f1c8a10'" }],
  },
  {
    name: "the caller's own key is not used",
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
    name: 'a reply that is lost is taken for a refusal',
    caughtBy: 'written/unknown-after-a-lost-reply',
    says: 'the report has written "no", not "unknown"',
    patches: [
      { file: ATTEMPT, find: 'return reason === undefined || !NOT_CONNECTED.includes(reason);', put: 'return false;' },
    ],
  },
  {
    name: 'a failure to connect is taken for a lost reply',
    caughtBy: 'written/no-when-nobody-listens',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: '!NOT_CONNECTED.includes(reason)', put: 'true' }],
  },
  {
    name: 'a refusal leaves the outcome open',
    caughtBy: 'written/no-after-a-refusal',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: 'return status >= 500 && code', put: 'return status >= 400 && code' }],
  },
  {
    name: 'a quota that cannot be counted leaves the outcome open',
    caughtBy: 'written/no-when-the-quota-is-used-up',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: ATTEMPT, find: "&& code !== 'integration_rate_unavailable'", put: '' }],
  },
  {
    name: 'a key that is refused settles what was left open',
    caughtBy: 'written/unknown-stays-unknown-after-other-refusals',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: '[400, 409]', put: '[400, 401, 409]' }],
  },
  {
    name: 'only the last attempt counts',
    caughtBy: 'written/unknown-stays-unknown-after-a-failure',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: SEND, find: '(isOpen && !settlesOutcome(last)) ||', put: '' }],
  },
  {
    name: 'nothing settles what was left open',
    caughtBy: 'written/settled-by-a-refusal-of-the-data',
    says: 'the report has written "unknown", not "no"',
    patches: [{ file: SEND, find: '(isOpen && !settlesOutcome(last))', put: 'isOpen' }],
  },
  {
    name: "any answer with the right JSON is the service's",
    caughtBy: 'proxies/the-right-json-as-a-page',
    says: 'only 1 of 3 attempts have come',
    patches: [
      { file: ATTEMPT, find: 'switch (mediaType.trim().toLowerCase())', put: "switch ('application/json' as string)" },
    ],
  },
  {
    name: 'any JSON is a lead',
    caughtBy: 'proxies/json-of-something-else',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: 'status < 300 && isAsked', put: 'status < 300 && body' }],
  },
  {
    name: "any problem is the service's",
    caughtBy: 'written/not-settled-by-a-proxy',
    says: 'the report has kind "problem", not "no-answer"',
    patches: [{ file: ATTEMPT, find: "typeof body?.code === 'string'", put: 'body' }],
  },
  {
    name: 'what an answer says of its status counts',
    caughtBy: 'proxies/a-problem-without-a-status',
    says: 'the report has written "no", not "unknown"',
    patches: [{ file: ATTEMPT, find: 'problemIn(body, status)', put: 'problemIn(body, Number(body.status))' }],
  },
  {
    name: 'redirects are followed',
    caughtBy: 'proxies/redirect-307',
    says: 'attempt 2 was not to be sent any more',
    patches: [{ file: ATTEMPT, find: "redirect: 'manual'", put: "redirect: 'follow'" }],
  },
  {
    name: 'refusals are repeated',
    caughtBy: 'repeating/refusals-are-not-repeated',
    says: 'attempt 2 was not to be sent any more',
    patches: [{ file: ATTEMPT, find: 'status === 408 || status === 429 || status >= 500', put: 'status >= 400' }],
  },
  {
    name: 'a quota is not waited for',
    caughtBy: 'repeating/429-is-repeated',
    says: 'only 1 of 2 attempts have come',
    patches: [{ file: ATTEMPT, find: '|| status === 429', put: '' }],
  },
  {
    name: 'the back-off does not double',
    caughtBy: 'repeating/back-off-doubles',
    says: 'ms, not 2000 or more',
    patches: [{ file: SEND, find: 'FIRST_BACKOFF_MS * 2 ** (attempts - 1)', put: 'FIRST_BACKOFF_MS' }],
  },
  {
    name: 'Retry-After is not waited for',
    caughtBy: 'retry-after/of-a-quota',
    says: 'ms, not 3000 or more',
    patches: [{ file: SEND, find: 'retryDelayMs(attempts, retryAfterOf(last))', put: 'retryDelayMs(attempts)' }],
  },
  {
    name: 'Retry-After is held against the clock when it is a date',
    caughtBy: 'retry-after/that-is-a-date-to-come',
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
    name: 'a wait is as long as a timer can be',
    caughtBy: 'retry-after/longer-than-a-timer',
    says: 'not 3000000000 or more',
    patches: [
      { file: SEND, find: 'sleep(Math.min(restMs, MAX_TIMER_MS)', put: 'sleep(restMs' },
      { file: SEND, find: 'restMs -= MAX_TIMER_MS', put: 'restMs = 0' },
    ],
  },
  {
    name: 'the deadline counts for nothing',
    caughtBy: 'deadlines/every-connection-breaks',
    says: 'has not reported within 14000 ms',
    patches: [
      { file: SEND, find: 'const end = performance.now() + deadlineMs;', put: 'const end = deadlineMs * 1e9;' },
    ],
  },
  {
    name: 'an attempt has the time of the whole call',
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
    name: 'an attempt is begun although there is no time for it',
    caughtBy: 'deadlines/too-late-for-another-attempt',
    says: 'has not reported within 20000 ms',
    patches: [{ file: SEND, find: '+ MIN_ATTEMPT_MS', put: '- MIN_ATTEMPT_MS' }],
  },
  {
    name: 'the deadline is held against the clock',
    caughtBy: 'clocks/set-forward',
    says: 'only 1 of 2 attempts have come',
    patches: [
      { file: SEND, find: 'const end = performance.now() + deadlineMs;', put: 'const end = Date.now() + deadlineMs;' },
      { file: SEND, find: 'isInTime = performance.now()', put: 'isInTime = Date.now()' },
    ],
  },
  {
    name: 'a caller that gives up is kept waiting for the next attempt',
    caughtBy: 'cancelling/while-the-next-attempt-is-awaited',
    says: 'has not reported within 13000 ms',
    patches: [{ file: SEND, find: 'await wait(waitMs, signal)', put: 'await wait(waitMs, undefined)' }],
  },
  {
    name: 'the open lead is not told',
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
    name: 'ids stand in paths as they are',
    caughtBy: 'reading/an-id-of-any-text',
    says: 'has the path to',
    patches: [{ file: CLIENT, find: 'encodeURIComponent(id)', put: 'id' }],
  },
  {
    name: 'every page is the first',
    caughtBy: 'reading/all-pages',
    says: 'of page 2 has the query',
    patches: [
      { file: CLIENT, find: 'listLeads({ ...options, ...(cursor && { cursor }) })', put: 'listLeads(options)' },
    ],
  },
];
