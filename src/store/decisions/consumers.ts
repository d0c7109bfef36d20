import { isDeepStrictEqual } from 'node:util';
import { MAX_CONSUMERS } from '../../../common/rules/field-rules.ts';
import {
  type Consumer,
  DEFAULT_CONSUMER,
  firstBackfills,
  type NewConsumer,
  type UnnumberedConsumer,
} from '../../domain/consumer.ts';
import type { CreateConsumerOutcome } from '../port/consumers.ts';

/** Decides about a new consumer, given the stored ones. @returns `new`: store it with the next number */
export function decideConsumer(
  consumers: readonly Consumer[],
  consumer: NewConsumer,
): CreateConsumerOutcome | { readonly kind: 'new'; readonly consumer: UnnumberedConsumer } {
  const namesake = consumers.find(({ name }) => name === consumer.name);
  if (namesake) {
    const selectLasting = ({ start, studioIds, includesTests }: NewConsumer) => [start, studioIds, includesTests];
    const isSame = !namesake.fault && isDeepStrictEqual(selectLasting(namesake), selectLasting(consumer));
    return isSame ? { kind: 'created', consumer: namesake } : { kind: 'exists' };
  }
  if (consumer.name === DEFAULT_CONSUMER.name) return { kind: 'exists' };
  if (consumers.length >= MAX_CONSUMERS) return { kind: 'limit-reached' };
  return { kind: 'new', consumer: { ...consumer, backfills: firstBackfills(consumer) } };
}
