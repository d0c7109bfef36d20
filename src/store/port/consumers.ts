import type { Actor, AuditContext } from '../../domain/audit.ts';
import type { Backfill, Consumer, NewConsumer } from '../../domain/consumer.ts';

/** `exists`: a consumer with other settings has the name. A repetition of the same creation is `created`, and changes nothing. */
export type CreateConsumerOutcome =
  | { readonly kind: 'created'; readonly consumer: Consumer }
  | { readonly kind: 'exists' | 'limit-reached' };

/**
 * The consumers of the change feed: DEFAULT_CONSUMER, which is not stored, and the stored ones. Each has its own delivery
 * for each lead of its studios with changes to handle.
 *
 * The writers of leads only store pending changes. Calls that list changes first distribute the pending ones: each becomes
 * a delivery for each consumer. Only once its deliveries are durable is a pending change acknowledged. A distributor must
 * read pending changes before the consumers, and acknowledge a pending change only at the revision and time that it read.
 * A consumer is therefore sent each change that resolved after its creation, in that state or a later one, until it
 * acknowledges the change. This holds whoever distributes, dies, or repeats old work. While many thousands of changes are
 * pending, a call may distribute only some, and list none of the others.
 *
 * Changes of test studios go only to the consumers that include them.
 */
export interface ConsumerStore {
  /**
   * createConsumer must enforce MAX_CONSUMERS, and unique names, for concurrent calls. The name of DEFAULT_CONSUMER is
   * taken. A consumer must be created, and removed, with an event in one write.
   */
  createConsumer(consumer: NewConsumer, by: Actor): Promise<CreateConsumerOutcome>;

  /**
   * Returns the stored consumers, in the order of their creation. Must see every change that resolved before the call.
   * An unreadable one has a `fault`, and is reported. Other consumers' changes must not depend on it.
   */
  listConsumers(): Promise<Consumer[]>;

  /** Removes a consumer; its deliveries become orphans. */
  removeConsumer(number: Consumer['number'], by: AuditContext): Promise<void>;

  /** Removes some deliveries of removed consumers; returns whether there may be more. */
  removeOrphans(): Promise<boolean>;

  /** Replaces the backfills of a consumer. Must change nothing, and return false, unless the stored ones are still `consumer`'s. */
  putBackfills(consumer: Consumer, backfills: readonly Backfill[]): Promise<boolean>;

  /** Returns the lowest studio id above one, readable or not; null: there is none. */
  findStudioAfter(studioId: string): Promise<string | null>;
}
