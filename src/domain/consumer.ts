import { CONSUMER_NAME_PATTERN, MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { newId } from './new-id.ts';

/** The maximum number of studios of a consumer that does not have all. */
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

/** A range of leads to send, in ascending order of their ids: those of a studio after one of them. */
export interface Backfill {
  /** Distinguishes it from an equal backfill that is requested meanwhile. */
  readonly id: string;
  readonly studioId: string;
  /** Null: all leads of the studio. */
  readonly after: string | null;
  /** Whether the leads of all studios with higher ids follow. */
  readonly andLater: boolean;
}

const ofStudio = (studioId: string): Backfill => ({ id: newId(), studioId, after: null, andLater: false });

/** Returns the backfills of all studios of a consumer. For a consumer of all studios, it starts before the first one. */
const ofAll = ({ studioIds }: NewConsumer): readonly Backfill[] =>
  studioIds?.map(ofStudio) ?? [{ ...ofStudio(''), andLater: true }];

export const firstBackfills = (consumer: NewConsumer): readonly Backfill[] =>
  consumer.start === 'now' ? [] : ofAll(consumer);

/**
 * Returns the backfills after a consumer asked for a studio, or for all its studios, again. Too many single studios
 * become a backfill of all.
 *
 * @param studioId one of its studios; null: all
 */
export function withBackfill(consumer: Consumer, studioId: string | null): readonly Backfill[] {
  const all = ofAll(consumer);
  if (studioId === null) return all;
  const next = [
    ...consumer.backfills.filter((each) => each.andLater || each.studioId !== studioId),
    ofStudio(studioId),
  ];
  return next.length > MAX_STUDIOS_OF_CONSUMER ? all : next;
}

/** The properties of a studio that decide which consumers receive its changes. */
interface Which {
  readonly id: string;
  readonly isTest: boolean;
}

/** Whether a consumer receives the changes of a studio. It gets a test studio by naming it, or with `includesTests`. */
export const isOfConsumer = ({ studioIds, includesTests }: NewConsumer, { id, isTest }: Which): boolean =>
  studioIds?.includes(id) ?? (includesTests || !isTest);

/** Caches one value for each consumer, created on first use. Holds at most as many as there can be consumers. */
export function ofEachConsumer<Value>(make: (consumer: number) => Value): (consumer: number) => Value {
  const values = new Map<number, Value>();
  return (consumer) => {
    const value = values.get(consumer) ?? make(consumer);
    // Values of removed consumers are no longer needed.
    if (values.size > MAX_CONSUMERS) values.clear();
    values.set(consumer, value);
    return value;
  };
}
