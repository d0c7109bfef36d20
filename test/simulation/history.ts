import type { LeadStage } from '../../src/domain/lead.ts';
import type { ContactValue, Region } from './contacts.ts';

/** When something began and ended, on the clock of the test; milliseconds. Infinity: it never ended. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** Formats a span for reports. */
export const when = ({ begin, end }: Span): string => `${seconds(begin)}–${seconds(end)} s`;

const seconds = (ms: number): string => (Number.isFinite(ms) ? (ms / 1000).toFixed(3) : '…');

/** A complete response to a website server. */
export interface RestAnswer {
  readonly status: number;
  /** The problem code of an error. */
  readonly code: string | undefined;
  readonly text: string;
  readonly headers: Headers;
}

export const isOpen = (stage: LeadStage): boolean => !['won', 'lost'].includes(stage);

/** Returns the id of the open lead that conflicts with a creation. */
export const conflictingLeadId = (answer: RestAnswer | undefined): string | undefined =>
  /\/([0-9a-f-]{36})>/.exec(answer?.headers.get('link') ?? '')?.[1];

/** The data of a request that creates a lead. */
export interface SentLead {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: ContactValue;
  readonly sourceId?: string;
  /** Begins with the idempotency key, so that the lead shows which request created it. */
  readonly note: string;
}

/** An action of a party with its outcome, or something that happened to the world. */
export type Event = { readonly span: Span; readonly party: string } & (
  | {
      readonly kind: 'request';
      readonly operation: Operation;
      readonly studioId: string;
      readonly secret: string;
      /** Undefined if the connection ended or the request timed out. */
      readonly answer: RestAnswer | undefined;
      /** The URL that it was sent to. */
      readonly url: string;
      /** The caller stopped waiting: the missing response is not a failure of the service. */
      readonly gaveUp?: boolean;
      /** The caller learned later that this request wrote nothing, and never will. */
      readonly wroteNothing?: boolean;
    }
  | {
      /** The move or correction of a lead. */
      readonly kind: 'change';
      readonly studioId: string;
      readonly leadId: string;
      readonly stage?: LeadStage;
      readonly contact?: ContactValue;
      readonly outcome: Outcome<unknown>;
    }
  | { readonly kind: 'erased'; readonly studioId: string; readonly leadId: string }
  | {
      /** A lead as the CRM reads it. */
      readonly kind: 'leadRead';
      readonly studioId: string;
      readonly leadId: string;
      readonly stage: LeadStage;
      readonly contact: ContactValue;
      readonly createdAt: string;
      readonly updatedAt: string;
    }
  | {
      /** The leads of a contact; all of them if `isWhole`. The studio had certainly had these regions before. */
      readonly kind: 'found';
      readonly studioId: string;
      readonly regions: readonly Region[];
      readonly contact: ContactValue;
      readonly leadIds: readonly string[];
      readonly isWhole: boolean;
    }
  | {
      /** The leads of an export, in its order. */
      readonly kind: 'exported';
      /** The id of the studio; empty: all studios. */
      readonly of: string;
      readonly leads: readonly { readonly studioId: string; readonly id: string; readonly updatedMs: number }[];
      readonly isWhole: boolean;
      /** The start of the exported changes by the clocks of the cores; null exports all leads. */
      readonly sinceMs: number | null;
    }
  | {
      /** A write to a register: the status of a studio, the role of a member, whether a secret is valid. */
      readonly kind: 'put';
      readonly what: string;
      readonly value: string;
      /** If false, the write may happen later, or never. */
      readonly isDone: boolean;
    }
  | {
      /** A read of a register. */
      readonly kind: 'registerRead';
      readonly what: string;
      readonly value: string;
    }
  | {
      readonly kind: 'keyAction';
      readonly studioId: string;
      readonly apiKeyId: string;
      readonly memberId: string;
      readonly action: 'created' | 'replaced' | 'revoked';
      /** If false, the call may take effect later, or never. */
      readonly isDone: boolean;
    }
  | {
      readonly kind: 'disturbance';
      readonly what: string;
      readonly loses: readonly Lost[];
      readonly excuses: Excused;
      /** The time from which requests are excused; on the clock of the test. */
      readonly excusesFrom: number;
    }
  | { readonly kind: 'other'; readonly what: string }
);

/** The data that a disturbance may lose: the counters of the quota. */
export type Lost = 'counts';

/** The requests that may fail in a disturbance: those through a named gateway, any or none. */
export type Excused = 'any' | 'none' | `gateway${string}`;

export type Operation =
  /** `spelled` is the letter case of its idempotency key, when it is not the usual one. */
  | { readonly name: 'create'; readonly lead: SentLead; readonly spelled?: 'upper' }
  | { readonly name: 'get'; readonly leadId: string }
  /** `walk` names the list that the page belongs to. */
  | { readonly name: 'list'; readonly walk: number; readonly page: number; readonly query: string };

/** The outcome of a call or command: an answer, a refusal that changed nothing, or unknown. */
export type Outcome<Answer> =
  | { readonly answer: Answer }
  | { readonly refused: string; readonly leadId: string | undefined }
  | { readonly unknown: string };

export type EventOf<Kind extends Event['kind']> = Extract<Event, { kind: Kind }>;

export const now = (): number => performance.now();

/** Everything that happened in a simulation, ordered by its end. */
export class History {
  readonly #events: Event[] = [];
  readonly #violations: string[] = [];

  add(event: Event): void {
    this.#events.push(event);
  }

  /** Records something other than a request, which ends now. */
  note(party: string, what: string, begin = now()): void {
    this.add({ kind: 'other', party, what, span: { begin, end: now() } });
  }

  /** Records that an observation breaks a promise. */
  fail(promise: string): void {
    this.#violations.push(promise);
  }

  get violations(): readonly string[] {
    return this.#violations;
  }

  get events(): readonly Event[] {
    return this.#events;
  }

  of<Kind extends Event['kind']>(kind: Kind): EventOf<Kind>[] {
    return this.#events.filter((event): event is EventOf<Kind> => event.kind === kind);
  }
}

/** Returns the possible values of a register during a span, given all writes to it. */
export function possibleValues(puts: readonly EventOf<'put'>[], span: Span): ReadonlySet<string> {
  const isOverwritten = (each: EventOf<'put'>) =>
    puts.some((later) => later.isDone && later.span.begin > each.span.end && later.span.end < span.begin);
  return new Set(puts.filter((each) => each.span.begin < span.end && !isOverwritten(each)).map(({ value }) => value));
}
