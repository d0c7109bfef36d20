import type { LeadStage } from '../../src/domain/lead.ts';
import type { Oddness } from './odd-records.ts';

/** When something was begun, and when it was over: milliseconds on the clock of who lived it; never over is Infinity. */
export interface Span {
  readonly begin: number;
  readonly end: number;
}

/** A span as stories and broken promises tell it. */
export const when = ({ begin, end }: Span): string => `${seconds(begin)}–${seconds(end)} s`;

const seconds = (ms: number): string => (Number.isFinite(ms) ? (ms / 1000).toFixed(3) : '…');

/** What a website server was answered, whole. */
export interface RestAnswer {
  readonly status: number;
  /** Of an error. */
  readonly code: string | undefined;
  readonly text: string;
  readonly headers: Headers;
}

/** What is sent to have a lead created. */
export interface SentLead {
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: { readonly type: 'email' | 'phone'; readonly value: string };
  readonly sourceId?: string;
  /** Begins with the idempotency key: the lead itself shows whose it is. */
  readonly note: string;
}

/** What somebody did and was told, or what happened to the world. */
export type Event = { readonly span: Span; readonly party: string } & (
  | {
      readonly kind: 'request';
      readonly operation: Operation;
      readonly studioId: string;
      readonly secret: string;
      /** Undefined: the connection ended, or nothing came in time. */
      readonly answer: RestAnswer | undefined;
      /** Whoever asked did not wait any longer: that nothing was answered says nothing of the service. */
      readonly gaveUp?: boolean;
      /** Whoever asked was told later that this has written nothing, and never will. */
      readonly wroteNothing?: boolean;
    }
  | {
      readonly kind: 'move';
      readonly studioId: string;
      readonly leadId: string;
      readonly stage: LeadStage;
      readonly outcome: MoveOutcome;
    }
  | {
      /** A lead as the CRM reads it. */
      readonly kind: 'seen';
      readonly studioId: string;
      readonly leadId: string;
      readonly stage: LeadStage;
    }
  | {
      /** What an export gave, in its order; whole: to its end. */
      readonly kind: 'exported';
      /** Empty: of all studios. */
      readonly of: string;
      readonly leads: readonly { readonly studioId: string; readonly id: string }[];
      readonly isWhole: boolean;
    }
  | {
      /** Something that is what was put there last: the status of a studio, the role of a member, whether a secret opens. */
      readonly kind: 'put';
      readonly what: string;
      readonly value: string;
      /** Unknown: it may also happen later, or never. */
      readonly isDone: boolean;
    }
  | {
      /** What somebody was shown of what is put somewhere. */
      readonly kind: 'shown';
      readonly what: string;
      readonly value: string;
    }
  | {
      readonly kind: 'keyDeed';
      readonly studioId: string;
      readonly apiKeyId: string;
      readonly memberId: string;
      readonly deed: 'created' | 'replaced' | 'revoked';
      /** Unknown: it may also happen later, or never. */
      readonly isDone: boolean;
    }
  | {
      /** What somebody was told who asked for something in a studio that has records which no release of ours wrote. */
      readonly kind: 'odd';
      readonly studioId: string;
      readonly oddness: Oddness;
      readonly asked: string;
      readonly told: string;
    }
  | { readonly kind: 'disturbance'; readonly what: string; readonly loses: readonly Lost[] }
  /** More than usual is asked: some are turned away. */
  | { readonly kind: 'crowd'; readonly what: string }
  | { readonly kind: 'other'; readonly what: string }
);

/** What a disturbance may take with it: counts of the quota. */
export type Lost = 'counts';

export type Operation =
  /** `spelled` is how its idempotency key is, where that is not as usual. */
  | { readonly name: 'create'; readonly lead: SentLead; readonly spelled?: 'upper' }
  | { readonly name: 'get'; readonly leadId: string }
  /** `walk` names the list that the page belongs to. */
  | { readonly name: 'list'; readonly walk: number; readonly page: number; readonly query: string };

export type MoveOutcome =
  | { readonly told: 'moved' }
  | { readonly told: 'refused'; readonly reason: string; readonly leadId: string | undefined }
  | { readonly told: 'nothing' };

export type EventOf<Kind extends Event['kind']> = Extract<Event, { kind: Kind }>;

export const now = (): number => performance.now();

/** Everything that happened in a life, in the order in which it was over. */
export class History {
  readonly #events: Event[] = [];
  readonly #broken: string[] = [];

  add(event: Event): void {
    this.#events.push(event);
  }

  /** Says that a promise is broken by what somebody just saw. */
  breaks(promise: string): void {
    this.#broken.push(promise);
  }

  get broken(): readonly string[] {
    return this.#broken;
  }

  get events(): readonly Event[] {
    return this.#events;
  }

  of<Kind extends Event['kind']>(kind: Kind): EventOf<Kind>[] {
    return this.#events.filter((event): event is EventOf<Kind> => event.kind === kind);
  }
}

/** The values that something may have had at some moment of a span, by all that was put there. */
export function possibleValues(puts: readonly EventOf<'put'>[], span: Span): ReadonlySet<string> {
  const over = (each: EventOf<'put'>) =>
    puts.some((later) => later.isDone && later.span.begin > each.span.end && later.span.end < span.begin);
  return new Set(puts.filter((each) => each.span.begin < span.end && !over(each)).map(({ value }) => value));
}
