import { assert } from '../../common/invariants.ts';
import { DEFAULT_CONSUMER } from './consumer.ts';
import type { ErasedLead, Lead } from './lead.ts';

export const CHANGE_KINDS = ['created', 'stage-changed', 'updated', 'resent', 'erased', 'enquired'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** Sends a lead to one consumer again. It is stored like a kind of change, and told to that consumer as `resent`. */
type ResentToOne = `resent-${number}`;
export const resentTo = (consumer: number): ResentToOne => `resent-${consumer}`;
export const isResentToOne = (kind: string): kind is ResentToOne => kind.startsWith('resent-');

/** A lead's current state, with its changes since the last acknowledgement. */
export interface LeadChange {
  readonly lead: Lead | ErasedLead;
  /** Grows with every change of the lead, so the higher revision is the newer state. Acknowledgements refer to it. */
  readonly revision: number;
  readonly since: Date;
  /** Each kind once, with the time of its latest change; oldest first. */
  readonly kinds: readonly { readonly kind: ChangeKind; readonly time: Date }[];
  /** How often its consumer has set it aside since it last changed. */
  readonly attempts: number;
}

/** The unacknowledged changes of a lead, as they are stored with it. */
export interface ChangeMark {
  /** 0: unchanged since its creation. */
  readonly revision: number;
  /** The time of the first of them; null: there are none; undefined: it cannot be read. */
  readonly since: Date | null | undefined;
  /** The time of the latest of each kind; a kind of another release may be among them. */
  readonly kinds: Readonly<Record<string, unknown>>;
}

/** Higher than every revision of this service. One that is higher could overflow, and starts again. */
const MAX_REVISION = 2 ** 52;

/**
 * Returns the mark of a lead after a change. Kinds accumulate until they are acknowledged. The revision is at least the
 * time of the change, in milliseconds: a database restored from a backup has lost revisions that consumers have seen, and
 * so are new ones higher than those.
 *
 * @param lowest what the revision is at least, if that is more
 */
export function marked(
  { revision, since, kinds }: ChangeMark,
  kind: ChangeKind | ResentToOne,
  time: Date,
  lowest = 0,
): ChangeMark {
  const last = revision < MAX_REVISION ? revision : -1;
  const next = Math.max(last + 1, time.getTime(), lowest);
  assert(next > last, 'revision_grows');
  const first = since && toFirstChange(since);
  // A lead that was imported may be created long before its mark, and consumers get no kind from before that. Release
  // 1.0 stored no time.
  const created = revision === 0 && first && first.getTime() > 0 ? { created: first } : {};
  return {
    revision: next,
    since: first && first <= time ? first : time,
    kinds: { ...(since !== null && kinds), ...created, [kind]: time },
  };
}

/**
 * Release 1.2 adds this to the time of a mark once it has distributed it. The change then waits for the consumer without a name
 * alone; milliseconds.
 */
export const DISTRIBUTED = 1e15;

const isDistributed = (since: ChangeMark['since']): since is Date => !!since && since.getTime() >= DISTRIBUTED;

const toFirstChange = (since: Date): Date => (isDistributed(since) ? new Date(since.getTime() - DISTRIBUTED) : since);

/**
 * A delivery is due at its first change. One that was set aside is due this much after the time at which it comes again, and one
 * that does not come again by itself, twice this much after the time at which it was set aside. MongoDB keeps an acknowledged
 * delivery for a while, due three times this much after the acknowledgement; milliseconds.
 */
export const DEFERRED = 1e15;
export const SET_ASIDE = 2e15;
export const HANDLED = 3e15;

/** The changes of a lead that a consumer has not handled, stored apart from the lead. */
export interface Delivery {
  readonly revision: number;
  readonly since: Date;
  /** The time of the latest of each kind. */
  readonly kinds: Readonly<Record<string, Date>>;
}

/** Returns the time of the first change of a mark. @param createdAt invalid if it cannot be read */
const findFirstTime = ({ since }: ChangeMark, createdAt: Date): Date =>
  // 0: of release 1.0, which stored no time.
  [since && toFirstChange(since), createdAt].find((time) => time && time.getTime() > 0) ?? new Date(0);

/**
 * Returns what a consumer gets of a mark: the kinds of change since then. Under clocks that disagree
 * it may get kinds that it had before. Null: the mark only sends the lead to other consumers again.
 *
 * @param createdAt invalid if it cannot be read
 */
export function computeDelivery(mark: ChangeMark, createdAt: Date, consumer: number): Delivery | null {
  const isForDefault = isDistributed(mark.since);
  if (isForDefault && consumer !== DEFAULT_CONSUMER.number) return null;
  const since = findFirstTime(mark, createdAt);
  const times = readTimes(mark);
  // An import may be created long before its mark. A mark of another program may have any times.
  const recent = mark.revision === 0 || isForDefault ? times : times.filter(([, time]) => time >= since);
  const own = recent.filter(([kind]) => !isResentToOne(kind) || kind === resentTo(consumer));
  return own.length === 0 && recent.length > 0 ? null : deliveryAt(mark, since, own);
}

type TimeOfKind = [kind: string, time: Date];

const readTimes = ({ kinds }: ChangeMark): TimeOfKind[] =>
  Object.entries(kinds).filter((entry): entry is TimeOfKind => entry[1] instanceof Date);

const deliveryAt = ({ revision }: ChangeMark, since: Date, kinds: readonly TimeOfKind[]): Delivery => ({
  // One that is higher starts again with the next change, which must not be lower than the delivery.
  revision: revision < MAX_REVISION ? revision : 0,
  since,
  kinds: Object.fromEntries(kinds),
});

/** Whether there is no change, and single consumers were only asked to be sent the lead: what they have set aside stays so. */
export const isOnlyResent = ({ kinds }: Pick<ChangeMark, 'kinds'>): boolean =>
  Object.keys(kinds).length > 0 && Object.keys(kinds).every(isResentToOne);

/** A state of a lead that a consumer has processed. */
export interface Acknowledgement {
  readonly studioId: string;
  readonly leadId: string;
  readonly revision: number;
}

export const MAX_ACKNOWLEDGEMENTS = 500;

/** A state of a lead that a consumer cannot process now. */
export interface SetAside extends Acknowledgement {
  /** A code, so that it is no personal data. */
  readonly reason: string;
  /** When it comes again by itself; null: only once it is taken back. In both cases it comes with its next change. */
  readonly retryAt: Date | null;
}

/** A lead that a consumer has set aside. */
export interface LeadSetAside extends SetAside {
  readonly attempts: number;
  /** Its place in the list. */
  readonly due: Date;
}

/** Returns when a delivery is due that is set aside. */
export const toDue = ({ retryAt }: Pick<SetAside, 'retryAt'>, now: Date): Date =>
  new Date(retryAt ? retryAt.getTime() + DEFERRED : now.getTime() + SET_ASIDE);

/** What is due before that can be set aside: what waits, and without a time also what comes again by itself. */
export const asideBefore = ({ retryAt }: Pick<SetAside, 'retryAt'>): number => (retryAt ? DEFERRED : SET_ASIDE);

/** Returns when a lead comes again by itself; null: it does not. */
export const toRetryTime = (due: Date): Date | null =>
  due.getTime() < SET_ASIDE ? new Date(due.getTime() - DEFERRED) : null;

/** What became of states that a consumer named. */
export interface Settled {
  /** The leads that no longer wait. */
  readonly settled: number;
  /** Those that have changed since. */
  readonly superseded: number;
  /** Those that the studio does not have. */
  readonly unknown: number;
}

/** @param waiting the revision of each named lead that waits; null: none does; undefined: there is no such lead */
export function countSettled(
  settled: number,
  named: readonly Acknowledgement[],
  waiting: (each: Acknowledgement) => number | null | undefined,
): Settled {
  if (settled === named.length) return { settled, superseded: 0, unknown: 0 };
  const found = named.map((each) => ({ revision: each.revision, stored: waiting(each) }));
  return {
    settled,
    superseded: found.filter(({ revision, stored }) => (stored ?? 0) > revision).length,
    unknown: found.filter(({ stored }) => stored === undefined).length,
  };
}
