import type { Actor, AuditContext } from '../../domain/audit.ts';
import type { Backfill, Consumer, NewConsumer } from '../../domain/consumer.ts';

/** `exists`: another consumer has the name. A repetition of the same creation is `created`, and changes nothing. */
export type CreateConsumerOutcome =
  | { readonly kind: 'created'; readonly consumer: Consumer }
  | { readonly kind: 'exists' | 'limit-reached' };

/**
 * The consumers of the change feed: DEFAULT_CONSUMER, which is not stored, and those that are. Each has a delivery for each lead of
 * its studios that it has changes of to handle, which depends on no other consumer.
 *
 * The writers of leads know nothing of them. Whoever lists changes first distributes those that are marked: each becomes
 * a delivery for each consumer, and only once these are durable the mark is acknowledged. It must read the marks before the
 * consumers, and acknowledge a mark only at the revision and time that were read. So of each change that
 * resolved after a consumer's creation resolved, the consumer is sent that state or a later one until it acknowledges it,
 * whoever distributes, dies, or repeats what it did long ago. While many thousands are marked, a call may distribute only some, and
 * list none of the others.
 *
 * Changes of test studios go only to the consumers that include them.
 */
export interface ConsumerStore {
  /**
   * createConsumer must hold the limit MAX_CONSUMERS, and that of one consumer for a name, for concurrent calls. The name of
   * DEFAULT_CONSUMER is taken. A new one must be stored with an event in one write, and so removed.
   */
  createConsumer(consumer: NewConsumer, by: Actor): Promise<CreateConsumerOutcome>;

  /**
   * Returns the stored consumers, in the order of their creation; must see every change that resolved before the call. One that
   * cannot be read has a `fault`, and is reported. The changes of the others must not depend on it.
   */
  listConsumers(): Promise<Consumer[]>;

  /** Removes a consumer; what waits for it is then of nobody. */
  removeConsumer(number: Consumer['number'], by: AuditContext): Promise<void>;

  /** Removes some deliveries of consumers that were removed; returns whether there may be more. */
  removeOrphans(): Promise<boolean>;

  /** Replaces the backfills of a consumer; must change nothing, and return false, unless they are as they were read. */
  putBackfills(consumer: Consumer, backfills: readonly Backfill[]): Promise<boolean>;

  /** Returns the lowest id of a studio above one, readable or not; null: there is none. */
  findStudioAfter(studioId: string): Promise<string | null>;
}
