import type { KeyOperation } from '../common/rules/public-api.ts';
import type { RefusalReason } from '../proto/gen/leadintake/v1/refusal_pb.ts';

/** The meaning of a code, and where it occurs. */
interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** The operations that may answer with it; undefined means all. */
  readonly operations?: readonly KeyOperation[];
  /** Whether the request was counted, so that the response has quota headers. */
  readonly counted?: 'always' | 'sometimes';
  /** The event for the key check: the core refused the key, or the quota did not count the request. Otherwise `problem`. */
  readonly event?: 'keyProblem' | 'uncounted';
  /** Headers of every response. @rule 7.wait 7.www-authenticate */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Every error code of this API. `gateway/docs/problems/` says what to do about each.
 *
 * @rule 7.integration_invalid_request 7.integration_source_invalid 7.integration_key_invalid 7.subscription_suspended
 * @rule 7.integration_scope_forbidden 7.integration_issuer_forbidden 7.integration_lead_not_found
 * @rule 7.integration_idempotency_conflict 7.integration_lead_already_open 7.integration_rate_limited
 * @rule 7.integration_rate_unavailable 7.route_not_found 7.method_not_allowed 7.internal_error
 * @rule 7.integration_unavailable
 */
export const PROBLEMS = {
  integration_invalid_request: { status: 400, title: 'The request is not valid.', counted: 'sometimes' },
  integration_source_invalid: {
    status: 400,
    title: 'The lead source does not belong to the studio or is disabled.',
    operations: ['createLead'],
    counted: 'always',
  },
  integration_key_invalid: {
    status: 401,
    title: 'The API key is missing, revoked, replaced or expired.',
    event: 'keyProblem',
    headers: { 'www-authenticate': 'Bearer' },
  },
  subscription_suspended: { status: 402, title: 'Access to the studio is suspended.', event: 'keyProblem' },
  integration_scope_forbidden: { status: 403, title: 'The API key does not allow this operation.' },
  integration_issuer_forbidden: {
    status: 403,
    title: 'The current permissions of the person who issued the API key no longer allow the integration.',
    event: 'keyProblem',
  },
  integration_lead_not_found: {
    status: 404,
    title: "There is no such lead in this key's studio.",
    operations: ['getLead'],
    counted: 'always',
  },
  integration_idempotency_conflict: {
    status: 409,
    title: 'The Idempotency-Key was used with different data.',
    operations: ['createLead'],
    counted: 'always',
  },
  integration_lead_already_open: {
    status: 409,
    title: 'The contact already has an open lead.',
    operations: ['createLead'],
    counted: 'always',
  },
  integration_rate_limited: { status: 429, title: 'Too many requests.', counted: 'always', event: 'uncounted' },
  integration_rate_unavailable: {
    status: 503,
    title: 'The quota check is temporarily unavailable; nothing was written.',
    event: 'uncounted',
    headers: { 'retry-after': '1' },
  },
  route_not_found: { status: 404, title: 'There is nothing at this path.', operations: [] },
  method_not_allowed: { status: 405, title: 'The path does not support this method.', operations: [] },
  internal_error: { status: 500, title: 'Something went wrong inside the service.', counted: 'sometimes' },
  integration_unavailable: {
    status: 503,
    title: 'The service is temporarily unavailable; repeat the request with the same Idempotency-Key.',
    counted: 'sometimes',
    headers: { 'retry-after': '1' },
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof PROBLEMS;

export const PROBLEM_CODES = Object.keys(PROBLEMS) as ProblemCode[];

export const findKind = (code: ProblemCode): ProblemKind => PROBLEMS[code];

/**
 * The code for each refusal of the core. If the core refuses the gateway itself, the service is unavailable. A refusal that only other RPC
 * callers get is an internal error here. @rule 7.order
 */
export const CODE_OF_REASON: Record<Exclude<keyof typeof RefusalReason, 'UNSPECIFIED'>, ProblemCode> = {
  INVALID_REQUEST: 'integration_invalid_request',
  SOURCE_INVALID: 'integration_source_invalid',
  KEY_INVALID: 'integration_key_invalid',
  STUDIO_SUSPENDED: 'subscription_suspended',
  ISSUER_FORBIDDEN: 'integration_issuer_forbidden',
  LEAD_NOT_FOUND: 'integration_lead_not_found',
  IDEMPOTENCY_CONFLICT: 'integration_idempotency_conflict',
  LEAD_ALREADY_OPEN: 'integration_lead_already_open',
  STUDIO_NOT_FOUND: 'internal_error',
  MEMBER_FORBIDDEN: 'internal_error',
  KEY_NOT_FOUND: 'internal_error',
  KEY_LIMIT_REACHED: 'internal_error',
  KEY_REVOKED: 'internal_error',
  KEY_EXPIRED: 'internal_error',
  CALLER_UNAUTHENTICATED: 'integration_unavailable',
  CALLER_FORBIDDEN: 'integration_unavailable',
  DIRECTORY_LIMIT_REACHED: 'internal_error',
  SCOPE_FORBIDDEN: 'integration_scope_forbidden',
  UPDATE_TIME_MISMATCH: 'internal_error',
  CONSUMER_NOT_FOUND: 'internal_error',
  CONSUMER_EXISTS: 'internal_error',
  CONSUMER_LIMIT_REACHED: 'internal_error',
  NOT_A_TEST_STUDIO: 'internal_error',
  STUDIO_ENDED: 'subscription_suspended',
};

/**
 * Fields outside the data of a creation: headers, framing, and the body as a whole. An intermediary may spoil these in one attempt only, so
 * their faults do not tell a client what happened to its other attempts. Released clients know these names only.
 */
export const NOT_OF_DATA = [
  'body',
  'Content-Encoding',
  'Content-Type',
  'Expect',
  'Host',
  'HTTP version',
  'Idempotency-Key',
  'Transfer-Encoding',
] as const;

/** A path into the data. The type ensures that every other name is in a list. */
export type DataPath = string & { readonly ofData: true };

/** A fault in one part of a request: a header, a parameter, or a path into the body (`contact.value`). */
export interface FaultyField {
  readonly field: (typeof NOT_OF_DATA)[number] | 'id' | 'limit' | 'cursor' | DataPath;
  /** Completes the sentence "The value …". */
  readonly message: string;
}

/** The gateway's only error for callers. Any other error is answered as `internal_error`. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly status: number;
  readonly detail: string | undefined;
  readonly faults: readonly FaultyField[];
  readonly headers: Readonly<Record<string, string>>;
  /** The open lead that prevented a creation, if the core named it. */
  readonly existingLeadId: string | undefined;
  /** Whether the problem is already logged, or need not be. */
  readonly isLogged: boolean;

  constructor(
    code: ProblemCode,
    more: {
      readonly status?: number | undefined;
      readonly detail?: string | undefined;
      readonly faults?: readonly FaultyField[];
      readonly headers?: Readonly<Record<string, string>>;
      readonly existingLeadId?: string | undefined;
      readonly isLogged?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(more.detail ?? PROBLEMS[code].title, { cause: more.cause });
    this.name = 'Problem';
    this.code = code;
    this.status = more.status ?? PROBLEMS[code].status;
    this.detail = more.detail;
    this.faults = more.faults ?? [];
    this.headers = { ...findKind(code).headers, ...more.headers };
    this.existingLeadId = more.existingLeadId;
    this.isLogged = more.isLogged ?? false;
  }
}

/** A request that was not begun because too many are waiting. */
export const OVERLOADED = new Problem('integration_unavailable', {
  detail: 'Too many requests are waiting, so this one was not begun: nothing was written. Repeat it later.',
  // Otherwise the log would get thousands of lines.
  isLogged: true,
});

/** Returns the key-check event for an error. */
export const problemEvent = (error: unknown) => (error instanceof Problem && findKind(error.code).event) || 'problem';

/** The maximum number of faults in a response. A hostile body can have thousands. @rule 2.5.together */
const MAX_FIELDS = 50;

/** Creates the problem for a request that breaks the contract. */
export function invalidRequest(faults: readonly FaultyField[], detail?: string, status?: number): Problem {
  return new Problem('integration_invalid_request', { faults: faults.slice(0, MAX_FIELDS), detail, status });
}

export const TOO_SLOW = invalidRequest([], 'The request did not arrive in time.', 408);
export const HEADERS_TOO_LARGE = invalidRequest([], 'The headers are too large.', 431);

/** The media type of every error. @rule 1.media-types */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json';

/**
 * Returns the response body of a problem.
 *
 * @rule 2.5.type 2.5.title 2.5.status 2.5.code 2.5.detail 2.5.requestId 2.5.page
 */
export function problemBody(problem: Problem, requestId: string, publicUrl: string): string {
  const { code, status, detail, faults } = problem;
  return JSON.stringify({
    type: `${publicUrl}/docs/problems/${code}`,
    title: PROBLEMS[code].title,
    status,
    code,
    detail,
    fields: faults.length > 0 ? groupByField(faults) : undefined,
    requestId,
  });
}

/**
 * Returns the messages by field. The object is built from entries, because callers choose the names of unknown properties, such as
 * `__proto__`. Half a surrogate pair in a name would make the body unreadable for strict parsers.
 *
 * @rule 2.5.fields
 */
function groupByField(faults: readonly FaultyField[]): Record<string, string[]> {
  const byField = Object.entries(Object.groupBy(faults, ({ field }) => field.toWellFormed()));
  return Object.fromEntries(byField.map(([field, sameField = []]) => [field, sameField.map(({ message }) => message)]));
}
