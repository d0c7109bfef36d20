/** The reasons of refusals. A refused request changed nothing. */
export type RefusalReason =
  | 'INVALID_REQUEST'
  | 'SOURCE_INVALID'
  | 'KEY_INVALID'
  | 'STUDIO_SUSPENDED'
  | 'ISSUER_FORBIDDEN'
  | 'LEAD_NOT_FOUND'
  | 'IDEMPOTENCY_CONFLICT'
  | 'LEAD_ALREADY_OPEN'
  | 'STUDIO_NOT_FOUND'
  | 'MEMBER_FORBIDDEN'
  | 'KEY_NOT_FOUND'
  | 'KEY_LIMIT_REACHED'
  | 'KEY_REVOKED'
  | 'KEY_EXPIRED'
  | 'CALLER_UNAUTHENTICATED'
  | 'CALLER_FORBIDDEN'
  | 'DIRECTORY_LIMIT_REACHED'
  | 'SCOPE_FORBIDDEN'
  | 'UPDATE_TIME_MISMATCH';

export interface FieldFault {
  /** The field's JSON path in the request: `contact.email`. */
  readonly field: string;
  /** The end of a sentence that begins with "The value …". */
  readonly message: string;
}

/** The error of an expected refusal. Any other error means an unexpected fault whose outcome is unknown. */
export class Refusal extends Error {
  readonly reason: RefusalReason;
  /** Machine-readable details, such as the id of the conflicting lead. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The invalid fields; only with INVALID_REQUEST. */
  readonly faults: readonly FieldFault[];

  constructor(
    reason: RefusalReason,
    message: string,
    { metadata = {}, faults = [] }: { metadata?: Record<string, string>; faults?: readonly FieldFault[] } = {},
  ) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
    this.metadata = metadata;
    this.faults = faults;
  }
}

/** Collects the invalid fields of a request, so that its caller gets all of them in one response. */
export class Faults {
  readonly #faults: FieldFault[] = [];

  note(field: string, message: string | undefined): void {
    if (message !== undefined) this.#faults.push({ field, message });
  }

  /** @throws Refusal INVALID_REQUEST if there are faults */
  refuseIfAny(): void {
    if (this.#faults.length > 0) throw this.refusal();
  }

  refusal(): Refusal {
    return new Refusal('INVALID_REQUEST', 'The request is not valid.', { faults: this.#faults });
  }
}
