/** Every reason for which the core says no; a refused request changed nothing. */
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

/** A field that breaks a rule. */
export interface FieldFault {
  /** The field's JSON path in the request: `contact.email`. */
  readonly field: string;
  /** What is wrong, as the end of the sentence "The value …". */
  readonly message: string;
}

/** The core's one way to say no. Anything else that is thrown means: unknown fault, outcome unknown. */
export class Refusal extends Error {
  readonly reason: RefusalReason;
  /** Facts for the caller's program, such as the id of the lead in the way. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What is wrong with the request; only with INVALID_REQUEST. */
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

/** Collects the faults of one request, so that its caller hears of all of them at once. */
export class Faults {
  readonly #faults: FieldFault[] = [];

  /** Notes a fault, if there is one. */
  note(field: string, message: string | undefined): void {
    if (message !== undefined) this.#faults.push({ field, message });
  }

  /** Refuses the request if anything was noted. */
  refuseIfAny(): void {
    if (this.#faults.length > 0) throw this.refusal();
  }

  /** The refusal for what was noted. */
  refusal(): Refusal {
    return new Refusal('INVALID_REQUEST', 'The request is not valid.', { faults: this.#faults });
  }
}
