import { assert } from '../../common/invariants.ts';
import { DEFAULT_CONSUMER } from './consumer.ts';
import type { ErasedLead, Lead, LeadOfStudio } from './lead.ts';

export const CHANGE_KINDS = ['created', 'stage-changed', 'updated', 'resent', 'erased', 'enquired'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A kind of change that sends a lead to one consumer again. The consumer sees it as `resent`. */
type ResentToOne = `resent-${number}`;
export const resentTo = (consumer: number): ResentToOne => `resent-${consumer}`;
export const isResentToOne = (kind: string): kind is ResentToOne => kind.startsWith('resent-');

/** A lead's current state, with its changes since the last acknowledgement. */
export interface LeadChange {
  readonly lead: Lead | ErasedLead;
  /** Grows with every change of the lead: a higher revision is a newer state. Acknowledgements refer to it. */
  readonly revision: number;
  readonly since: Date;
  /** Each kind once, with the time of its latest change; oldest first. */
  readonly kinds: readonly { readonly kind: ChangeKind; readonly time: Date }[];
  /** How often its consumer set it aside since its last change. */
  readonly attempts: number;
}

/** The unacknowledged changes of a lead, as they are stored with it. */
export interface PendingChange {
  /** 0: unchanged since its creation. */
  readonly revision: number;
  /** The time of the first of these changes; null: there are none; undefined: unreadable. */
  readonly since: Date | null | undefined;
  /** The time of the latest change of each kind, possibly of kinds from another release. */
  readonly kinds: Readonly<Record<string, unknown>>;
}

/** Higher than every revision of this service. A higher one could overflow, so numbering starts again. */
const MAX_REVISION = 2 ** 52;

/**
 * Adds a change to the pending ones of a lead. Kinds accumulate until they are acknowledged. The revision is at least the
 * time of the change in milliseconds. After a restore, new revisions are therefore higher than lost ones that consumers
 * have seen.
 *
 * @param lowest a higher minimum for the revision
 */
export function addChange(
  { revision, since, kinds }: PendingChange,
  kind: ChangeKind | ResentToOne,
  time: Date,
  lowest = 0,
): PendingChange {
  const last = revision < MAX_REVISION ? revision : -1;
  const next = Math.max(last + 1, time.getTime(), lowest);
  assert(next > last, 'revision_grows');
  const first = since && toFirstChange(since);
  // The creation counts as of the first pending change. An import may be older, and consumers get no kind from before
  // that change. Release 1.0 stored no time (0).
  const created = revision === 0 && first && first.getTime() > 0 ? { created: first } : {};
  return {
    revision: next,
    since: first && first <= time ? first : time,
    kinds: { ...(since !== null && kinds), ...created, [kind]: time },
  };
}

/**
 * Release 1.2 adds this to the time of a pending change that it has distributed to all consumers but the default one;
 * milliseconds.
 */
export const DISTRIBUTED = 1e15;

const isDistributed = (since: PendingChange['since']): since is Date => !!since && since.getTime() >= DISTRIBUTED;

const toFirstChange = (since: Date): Date => (isDistributed(since) ? new Date(since.getTime() - DISTRIBUTED) : since);

/**
 * Offsets of the due time, in milliseconds. A delivery is due at its first change. If set aside, it is due DEFERRED
 * after its retry time, or SET_ASIDE after it was set aside if it has no retry time. MongoDB keeps an acknowledged
 * delivery for a while, due HANDLED after its acknowledgement.
 */
export const DEFERRED = 1e15;
export const SET_ASIDE = 2e15;
export const HANDLED = 3e15;

/** The changes of a lead that a consumer has not handled, stored apart from the lead. */
export interface Delivery {
  readonly revision: number;
  readonly since: Date;
  /** The time of the latest change of each kind. */
  readonly kinds: Readonly<Record<string, Date>>;
}

/** Returns the time of the first pending change. @param createdAt an invalid Date if unreadable */
const findFirstTime = ({ since }: PendingChange, createdAt: Date): Date =>
  // 0: release 1.0 stored no time.
  [since && toFirstChange(since), createdAt].find((time) => time && time.getTime() > 0) ?? new Date(0);

/**
 * Returns the delivery of a pending change to a consumer, with the kinds since its first time. If clocks disagree, a
 * consumer may get a kind again. Null: the change only resends the lead to other consumers.
 *
 * @param createdAt an invalid Date if unreadable
 */
export function computeDelivery(pending: PendingChange, createdAt: Date, consumer: number): Delivery | null {
  const isForDefault = isDistributed(pending.since);
  if (isForDefault && consumer !== DEFAULT_CONSUMER.number) return null;
  const since = findFirstTime(pending, createdAt);
  const times = readTimes(pending);
  // Not for a new lead, because an import may be created long before its pending change. Another program may store any times.
  const recent = pending.revision === 0 || isForDefault ? times : times.filter(([, time]) => time >= since);
  const received = recent.filter(([kind]) => !isResentToOne(kind) || kind === resentTo(consumer));
  return received.length === 0 && recent.length > 0 ? null : deliveryAt(pending, since, received);
}

type TimeOfKind = [kind: string, time: Date];

const readTimes = ({ kinds }: PendingChange): TimeOfKind[] =>
  Object.entries(kinds).filter((entry): entry is TimeOfKind => entry[1] instanceof Date);

const deliveryAt = ({ revision }: PendingChange, since: Date, kinds: readonly TimeOfKind[]): Delivery => ({
  // addChange restarts the numbers of higher revisions, and the next revision must not be lower than the delivery's.
  revision: revision < MAX_REVISION ? revision : 0,
  since,
  kinds: Object.fromEntries(kinds),
});

/** Whether the lead did not change, and is only resent to single consumers. Deliveries that are set aside then stay so. */
export const isOnlyResent = (kinds: PendingChange['kinds']): boolean =>
  Object.keys(kinds).length > 0 && Object.keys(kinds).every(isResentToOne);

/** A state of a lead that a consumer has processed. */
export interface Acknowledgement extends LeadOfStudio {
  readonly revision: number;
}

export const MAX_ACKNOWLEDGEMENTS = 500;

/** A state of a lead that a consumer cannot process yet. */
export interface SetAside extends Acknowledgement {
  /** A code, which contains no personal data. */
  readonly reason: string;
  /** When it is sent again; null: only once it is taken back. Its next change sends it in any case. */
  readonly retryAt: Date | null;
}

/** The position of a lead in a consumer's list of deliveries set aside. */
export interface SetAsidePosition extends LeadOfStudio {
  readonly due: Date;
}

export interface LeadSetAside extends SetAside, SetAsidePosition {
  readonly attempts: number;
}

/** Returns the due time of a delivery that is set aside. */
export const toDueTime = (retryAt: Date | null, now: Date): Date =>
  new Date(retryAt ? retryAt.getTime() + DEFERRED : now.getTime() + SET_ASIDE);

/** Returns the due time below which a delivery can be set aside: if it waits; without a retry time, also if it is deferred. */
export const waitingBefore = (retryAt: Date | null): number => (retryAt ? DEFERRED : SET_ASIDE);

/** Returns when a lead is sent again; null: only once it is taken back. */
export const toRetryTime = (due: Date): Date | null =>
  due.getTime() < SET_ASIDE ? new Date(due.getTime() - DEFERRED) : null;

/** The results for states that a consumer named. */
export interface StateCounts {
  /** The leads that no longer wait. */
  readonly applied: number;
  /** Leads that have changed since. */
  readonly superseded: number;
  /** Leads that the studio does not have. */
  readonly unknown: number;
}

/** Counts the results for the named states. @param waiting the waiting revision of each named lead; null: nothing waits; undefined: no such lead */
export function countStates(
  applied: number,
  named: readonly Acknowledgement[],
  waiting: (each: Acknowledgement) => number | null | undefined,
): StateCounts {
  if (applied === named.length) return { applied, superseded: 0, unknown: 0 };
  const found = named.map((each) => ({ revision: each.revision, stored: waiting(each) }));
  return {
    applied,
    superseded: found.filter(({ revision, stored }) => (stored ?? 0) > revision).length,
    unknown: found.filter(({ stored }) => stored === undefined).length,
  };
}
