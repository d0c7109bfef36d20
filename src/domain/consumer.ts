import { CONSUMER_NAME_PATTERN, MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { newId } from './new-id.ts';
import type { Studio } from './studio.ts';

/** The maximum number of studios that a consumer names. A consumer of all studios names none. */
export const MAX_STUDIOS_OF_CONSUMER = 100;

const NAME = new RegExp(CONSUMER_NAME_PATTERN);

/** Returns the end of the sentence "The value …"; undefined: the name is valid. */
export const consumerNameFault = (name: string): string | undefined =>
  NAME.test(name) ? undefined : 'must have 1 to 63 of a to z, 0 to 9 and hyphens, and begin with a letter';

/** `now`: only later changes. `all-leads`: also every existing lead. */
export const CONSUMER_STARTS = ['now', 'all-leads'] as const;
export type ConsumerStart = (typeof CONSUMER_STARTS)[number];

/** The settings of a consumer, which never change. */
export interface NewConsumer {
  readonly name: string;
  /** In ascending order, each once; null: all studios. */
  readonly studioIds: readonly string[] | null;
  /** Whether "all studios" includes test studios. */
  readonly includesTests: boolean;
  readonly start: ConsumerStart;
  readonly createdAt: Date;
}

/** A consumer that has no number yet. */
export interface UnnumberedConsumer extends NewConsumer {
  /** Leads to send although they did not change. */
  readonly backfills: readonly Backfill[];
}

export interface StoredConsumer extends UnnumberedConsumer {
  /** A number is never reused, so a new consumer with the same name inherits nothing. */
  readonly number: number;
}

/** A consumer of the change feed. */
export interface Consumer extends StoredConsumer {
  /** Why its record cannot be read. It receives nothing meanwhile. Changes of all studios wait for it, because its own studios are unknown. */
  readonly fault?: Error;
}

/** The consumer of calls that name none. It is not stored, so it always exists. Stored consumers have numbers from 1. */
export const DEFAULT_CONSUMER: Consumer = {
  // Higher than all stored numbers, because a core of 1.2 removes deliveries below its next free number.
  number: 2 ** 30,
  name: 'default',
  studioIds: null,
  includesTests: false,
  start: 'all-leads',
  createdAt: new Date(0),
  backfills: [],
};

/** The leads of a studio that are still to be sent, in ascending order of their ids. */
export interface Backfill {
  /** Distinguishes the backfill from an equal one that is requested meanwhile. */
  readonly id: string;
  readonly studioId: string;
  /** The last lead that was sent; null: none yet. */
  readonly after: string | null;
  /** Whether the leads of all studios with higher ids follow. */
  readonly andLater: boolean;
}

const newBackfill = (studioId: string): Backfill => ({ id: newId(), studioId, after: null, andLater: false });

/** Returns the backfills of all studios of a consumer. If it names none, a single backfill starts before the first studio. */
const allBackfills = ({ studioIds }: NewConsumer): readonly Backfill[] =>
  studioIds?.map(newBackfill) ?? [{ ...newBackfill(''), andLater: true }];

export const firstBackfills = (consumer: NewConsumer): readonly Backfill[] =>
  consumer.start === 'now' ? [] : allBackfills(consumer);

/**
 * Returns the backfills after a consumer requested a studio, or all its studios, again. Too many single studios become a
 * backfill of all.
 *
 * @param studioId one of its studios; null: all
 */
export function withBackfill(consumer: Consumer, studioId: string | null): readonly Backfill[] {
  const all = allBackfills(consumer);
  if (studioId === null) return all;
  const next = [
    ...consumer.backfills.filter((each) => each.andLater || each.studioId !== studioId),
    newBackfill(studioId),
  ];
  return next.length > MAX_STUDIOS_OF_CONSUMER ? all : next;
}

/** Whether a consumer receives the changes of a studio. If it names no studios, it gets test studios only with `includesTests`. */
export const receivesStudio = (consumer: NewConsumer, studio: Pick<Studio, 'id' | 'isTest'>): boolean =>
  consumer.studioIds?.includes(studio.id) ?? (consumer.includesTests || !studio.isTest);

/** Caches one value for each consumer, created on first use. Holds at most as many as there can be consumers. */
export function cachedByConsumer<Value>(make: (consumer: number) => Value): (consumer: number) => Value {
  const values = new Map<number, Value>();
  return (consumer) => {
    const known = values.get(consumer);
    if (known !== undefined) return known;
    // Full: some values belong to removed consumers.
    if (values.size > MAX_CONSUMERS) values.clear();
    const value = make(consumer);
    values.set(consumer, value);
    return value;
  };
}
