import { CONSUMER_NAME_PATTERN, MAX_CONSUMERS } from '../../common/rules/field-rules.ts';
import { newId } from './new-id.ts';
import type { Studio } from './studio.ts';

/** The maximum number of studios of a consumer that does not have all. */
export const MAX_STUDIOS_OF_CONSUMER = 100;

const NAME = new RegExp(CONSUMER_NAME_PATTERN);

/** The end of the sentence "The value …"; undefined: the name is valid. */
export const consumerNameFault = (name: string): string | undefined =>
  NAME.test(name) ? undefined : 'must have 1 to 63 of a to z, 0 to 9 and hyphens, and begin with a letter';

/** `now`: later changes only. `all-leads`: each lead that exists as well. */
export const CONSUMER_STARTS = ['now', 'all-leads'] as const;
export type ConsumerStart = (typeof CONSUMER_STARTS)[number];

/** What is given of a consumer; it never changes. */
export interface NewConsumer {
  readonly name: string;
  /** In ascending order, each once; null: all studios. */
  readonly studioIds: readonly string[] | null;
  /** Whether all studios are test studios, too. */
  readonly includesTests: boolean;
  readonly start: ConsumerStart;
  readonly createdAt: Date;
}

/** A consumer of the change feed. */
export interface Consumer extends NewConsumer {
  /** Never given to another, so that one with the same name inherits nothing. */
  readonly number: number;
  /** The leads that it has yet to be sent without a change. */
  readonly backfills: readonly Backfill[];
  /** Why its record cannot be read. It is sent nothing; the changes of all studios are kept for it, because its own are unknown. */
  readonly fault?: Error;
}

/** The consumer of calls that name none. It is not stored, so that it always exists; numbers of stored ones begin at 1. */
export const DEFAULT_CONSUMER: Consumer = {
  // Higher than those of stored ones: a core of 1.2 removes deliveries below the next number that no consumer has.
  number: 2 ** 30,
  name: 'default',
  studioIds: null,
  includesTests: false,
  start: 'all-leads',
  createdAt: new Date(0),
  backfills: [],
};

/** The leads of a studio behind one of them, in ascending order of their ids. */
export interface Backfill {
  /** Its own, so that it is told from one like it that is asked for meanwhile. */
  readonly id: string;
  readonly studioId: string;
  /** Null: all leads of the studio. */
  readonly after: string | null;
  /** Whether those of all studios with higher ids follow. */
  readonly andLater: boolean;
}

const ofStudio = (studioId: string): Backfill => ({ id: newId(), studioId, after: null, andLater: false });

/** Of all studios of a consumer. One of all begins before the first. */
const ofAll = ({ studioIds }: Pick<Consumer, 'studioIds'>): readonly Backfill[] =>
  studioIds?.map(ofStudio) ?? [{ ...ofStudio(''), andLater: true }];

export const firstBackfills = (consumer: NewConsumer): readonly Backfill[] =>
  consumer.start === 'now' ? [] : ofAll(consumer);

/**
 * Returns the backfills of a consumer that is to be sent the leads of a studio, or of all its studios, once more. Of too
 * many studios one after the other, it is sent all.
 *
 * @param studioId one of its studios; null: all
 */
export function withBackfill({ backfills, studioIds }: Consumer, studioId: string | null): readonly Backfill[] {
  const all = ofAll({ studioIds });
  if (studioId === null) return all;
  const next = [...backfills.filter((each) => each.andLater || each.studioId !== studioId), ofStudio(studioId)];
  return next.length > MAX_STUDIOS_OF_CONSUMER ? all : next;
}

/** What decides who is sent the changes of a studio. */
type Which = Pick<Studio, 'id' | 'isTest'>;

/** Whether a consumer is sent the changes of a studio. It asks for a test studio by its id, or with all others. */
export const isOfConsumer = (
  { studioIds, includesTests }: Pick<Consumer, 'studioIds' | 'includesTests'>,
  { id, isTest }: Which,
): boolean => studioIds?.includes(id) ?? (includesTests || !isTest);

/** Makes a value for each consumer when it is first asked for, and keeps those of as many as there can be. */
export function ofEachConsumer<Value>(make: (consumer: number) => Value): (consumer: number) => Value {
  const values = new Map<number, Value>();
  return (consumer) => {
    const value = values.get(consumer) ?? make(consumer);
    // Those of removed ones are not needed any more.
    if (values.size > MAX_CONSUMERS) values.clear();
    values.set(consumer, value);
    return value;
  };
}
