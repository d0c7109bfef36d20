import type { ProblemDetails } from './contract.ts';

/** Whether this request has written its lead, over all of its attempts. A request that reads writes nothing. */
export type Written = 'no' | 'unknown';

/** What is known of a request that failed, besides why. */
interface Failure {
  readonly written: Written;
  readonly idempotencyKey: string | undefined;
  readonly attempts: number;
  readonly cause?: unknown;
}

/** A request that failed: a ProblemError or a NoAnswerError. */
export class LeadIntakeError extends Error {
  /**
   * `no`: nothing was written. `unknown`: an attempt may have written the lead; create it again with the same data and
   * this idempotency key, at any later time, and the answer is the one lead.
   */
  readonly written: Written;
  /** The key that the creation was sent with, to resume it; undefined for requests that read. */
  readonly idempotencyKey: string | undefined;
  /** How often the request was sent. */
  readonly attempts: number;

  constructor(message: string, { written, idempotencyKey, attempts, cause }: Failure) {
    const resume = `; whether the lead was written is unknown: repeat with the idempotency key ${idempotencyKey}`;
    super(written === 'unknown' ? `${message.replace(/\.$/, '')}${resume}` : message, { cause });
    this.name = new.target.name;
    this.written = written;
    this.idempotencyKey = idempotencyKey;
    this.attempts = attempts;
  }
}

/** The service has answered with a problem, which a retry has not helped, or cannot help. Decide by its code. */
export class ProblemError extends LeadIntakeError {
  /** The address of the page that explains the code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemDetails['code'];
  /** What happened this time, for people. */
  readonly detail: string | undefined;
  /** What is wrong, by header, parameter, or path into the body such as `contact.value`. */
  readonly fields: Readonly<Record<string, readonly string[]>>;
  /** The name of the last attempt in the logs of the service; empty when the answer does not tell it. */
  readonly requestId: string;
  /** How long the service asks to wait before the next attempt; seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(problem: ProblemDetails, failure: Failure & { readonly retryAfterSeconds: number | undefined }) {
    super(problem.detail ?? problem.title, failure);
    this.type = problem.type;
    this.title = problem.title;
    this.status = problem.status;
    this.code = problem.code;
    this.detail = problem.detail;
    this.fields = problem.fields ?? {};
    this.requestId = problem.requestId;
    this.retryAfterSeconds = failure.retryAfterSeconds;
  }
}

/** 409: the contact has an open lead, under another key or from elsewhere. A normal outcome: the studio knows it. */
export class LeadAlreadyOpenError extends ProblemError {
  /** The id of that lead; undefined when the API key may not read leads. */
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

/** 409: the idempotency key has already created a lead, with other data. New data needs a new key. */
export class IdempotencyConflictError extends ProblemError {}

/**
 * The service has given no answer that can be understood: the network failed, time was up, or the caller gave up. The
 * cause says which.
 */
export class NoAnswerError extends LeadIntakeError {}
