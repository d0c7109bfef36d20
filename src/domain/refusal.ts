import { MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { MAX_LIVE_KEYS } from './api-key.ts';

/** The reasons of refusals with their default messages. A refused request changed nothing. */
const MESSAGES = {
  INVALID_REQUEST: 'The request is not valid.',
  SOURCE_INVALID: 'The source does not belong to the studio or is disabled.',
  KEY_INVALID: 'The key is unknown, replaced, revoked or expired.',
  STUDIO_SUSPENDED: 'The studio is suspended.',
  ISSUER_FORBIDDEN: 'The issuer of the key is no longer an owner or an admin of the studio.',
  LEAD_NOT_FOUND: 'There is no such lead.',
  IDEMPOTENCY_CONFLICT: 'The idempotency key was used with other data.',
  LEAD_ALREADY_OPEN: 'The contact already has an open lead.',
  STUDIO_NOT_FOUND: 'There is no such studio.',
  MEMBER_FORBIDDEN: 'Only an owner or an admin of the studio can see and manage its keys.',
  KEY_NOT_FOUND: 'There is no such key.',
  KEY_LIMIT_REACHED: `The studio has ${MAX_LIVE_KEYS} keys that are neither revoked nor expired.`,
  KEY_REVOKED: 'The key is permanently revoked.',
  KEY_EXPIRED: 'The key has expired: replacing it needs a new expiry.',
  CALLER_UNAUTHENTICATED: 'The call has no valid token, and no certificate of a known caller.',
  CALLER_FORBIDDEN: 'The caller may not do that.',
  DIRECTORY_LIMIT_REACHED: 'The studio has the maximum number of members or sources.',
  SCOPE_FORBIDDEN: 'The key does not have the scope.',
  UPDATE_TIME_MISMATCH: 'The lead has changed since the expected update time.',
  CONSUMER_NOT_FOUND: 'The change feed has no such consumer.',
  CONSUMER_EXISTS: 'A consumer with this name exists, with other studios or another start.',
  NOT_A_TEST_STUDIO: 'The studio is not a test studio.',
  STUDIO_ENDED: 'The studio has permanently ended.',
  CONSUMER_LIMIT_REACHED: `The change feed has ${MAX_CONSUMERS} consumers.`,
} as const;

export type RefusalReason = keyof typeof MESSAGES;

export interface FieldFault {
  /** The JSON path of the field in the request: `contact.email`. */
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
    message: string = MESSAGES[reason],
    { metadata = {}, faults = [] }: { metadata?: Record<string, string>; faults?: readonly FieldFault[] } = {},
  ) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
    this.metadata = metadata;
    this.faults = faults;
  }
}

/** The maximum number of faults in a refusal. A message can have hundreds of thousands. */
export const MAX_FAULTS = 50;

/** Collects the invalid fields of a request, so one response reports them all. */
export class Faults {
  readonly #faults: FieldFault[] = [];

  note(field: string, message: string | undefined): void {
    if (message !== undefined && this.#faults.length < MAX_FAULTS) this.#faults.push({ field, message });
  }

  /** Notes that a list is too long, or else the faults of its elements. `check` returns them by field; '' is the whole element. */
  noteEach<Element>(
    field: string,
    list: readonly Element[],
    max: number,
    check: (element: Element) => Readonly<Record<string, string | undefined>>,
  ): void {
    if (list.length > max) this.note(field, `must have at most ${max} elements`);
    else
      for (let index = 0; index < list.length && this.#faults.length < MAX_FAULTS; index += 1)
        for (const [name, message] of Object.entries(check(list[index] as Element)))
          this.note(`${field}[${index}]${name && `.${name}`}`, message);
  }

  /** @throws Refusal INVALID_REQUEST if there are faults */
  refuseIfAny(): void {
    if (this.#faults.length > 0) throw this.refusal();
  }

  refusal(): Refusal {
    return new Refusal('INVALID_REQUEST', MESSAGES.INVALID_REQUEST, { faults: this.#faults });
  }
}
