import type { ProblemDetails } from './api-types.ts';

/** Whether any attempt of a request may have written its lead. Always `no` for reads. */
export type Written = 'no' | 'unknown';

/** Properties that all errors have in common. */
interface Failure {
  readonly written: Written;
  readonly idempotencyKey: string | undefined;
  readonly attempts: number;
  readonly retryAfterSeconds: number | undefined;
  readonly cause?: unknown;
}

/** The base class of request errors: a ProblemError or a NoAnswerError. */
export class LeadIntakeError extends Error {
  /**
   * `no`: nothing was written. `unknown`: an attempt may have written the lead; repeat the creation at any later time with
   * the same data and this idempotency key to get that one lead.
   */
  readonly written: Written;
  /** The idempotency key of the creation, for resuming it; undefined for reads. */
  readonly idempotencyKey: string | undefined;
  /** The number of times the request was sent. */
  readonly attempts: number;
  /** The `Retry-After` of the last response, even if an intermediary sent it; seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, { written, idempotencyKey, attempts, retryAfterSeconds, cause }: Failure) {
    const resume = `; whether the lead was written is unknown: repeat with the idempotency key ${idempotencyKey}`;
    super(written === 'unknown' ? `${message.replace(/\.$/, '')}${resume}` : message, { cause });
    this.name = new.target.name;
    this.written = written;
    this.idempotencyKey = idempotencyKey;
    this.attempts = attempts;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** The service refused the request or failed, and retries did not or cannot help. Branch on `code`. */
export class ProblemError extends LeadIntakeError {
  /** The URL of the page that documents the code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemDetails['code'];
  /** A human-readable explanation of this occurrence. */
  readonly detail: string | undefined;
  /** Validation messages by header, parameter, or path into the body such as `contact.value`. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** The id of the last attempt in the service's logs; empty when the response has none. */
  readonly requestId: string;

  constructor(problem: ProblemDetails, failure: Failure) {
    const { status, code, title, detail = title, fields = {} } = problem;
    const faulty = Object.keys(fields).join(', ');
    super(`${status} ${code}${faulty && ` (${faulty})`}: ${detail}`, failure);
    this.type = problem.type;
    this.title = problem.title;
    this.status = problem.status;
    this.code = problem.code;
    this.detail = problem.detail;
    this.fields = problem.fields ?? {};
    this.requestId = problem.requestId;
  }
}

/** 409: the contact already has an open lead, created with another key or elsewhere. A normal outcome: the studio knows the person. */
export class LeadAlreadyOpenError extends ProblemError {
  /** The id of the open lead; undefined when the API key may not read leads. */
  readonly existingLeadId: string | undefined;

  constructor(
    existingLeadId: string | undefined,
    problem: ProblemDetails,
    failure: ConstructorParameters<typeof ProblemError>[1],
  ) {
    super(problem, failure);
    this.existingLeadId = existingLeadId;
  }
}

/** 409: the idempotency key was already used to create a lead with different data. New data needs a new key. */
export class IdempotencyConflictError extends ProblemError {}

/** The service sent no valid response: the network failed, the deadline passed, or the caller cancelled. See `cause`. */
export class NoAnswerError extends LeadIntakeError {
  /** The status of an intermediary's response, such as a proxy's; undefined when there was none. */
  readonly status: number | undefined;

  constructor(message: string, failure: Failure & { readonly status: number | undefined }) {
    super(message, failure);
    this.status = failure.status;
  }
}
