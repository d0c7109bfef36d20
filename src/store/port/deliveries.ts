import type { Consumer } from '../../domain/consumer.ts';
import type { LeadOfStudio } from '../../domain/lead.ts';
import type {
  Acknowledgement,
  LeadChange,
  LeadSetAside,
  SetAside,
  SetAsidePosition,
  StateCounts,
} from '../../domain/lead-change.ts';

export interface WaitingChanges {
  readonly leads: number;
  readonly since: Date | null;
}

export interface ConsumerChanges {
  /** The consumer as read during the distribution. */
  readonly consumer: Consumer;
  readonly changes: readonly LeadChange[];
  /** Whether all changes were distributed; otherwise there may be more. */
  readonly isComplete: boolean;
}

export interface MeasuredDeliveries {
  /** Deliveries that wait, or will wait from their retry time on. `since`: the first change of those that wait now. */
  readonly waiting: WaitingChanges;
  /** Deliveries set aside without a retry time. `since`: when the first of them was set aside. */
  readonly setAside: WaitingChanges;
  /** Whether all changes were distributed; otherwise more may wait. */
  readonly isComplete: boolean;
}

/** The deliveries of consumers. See ConsumerStore. */
export interface DeliveryStore {
  /**
   * Distributes some pending changes, and returns whether none was left. A consumer that is created after a call that
   * returned true receives only later changes.
   */
  distributeLeadChanges(): Promise<boolean>;

  /**
   * Returns leads for which a consumer has deliveries, in their current, durable state, with their enquiries and
   * revision; null: the consumer was removed. Leads are ordered by their first unacknowledged change, as far as the
   * writers' clocks agree. Must skip any number of unreadable leads. If it skips thousands of them, a call may return no
   * lead, but later calls must then return the readable ones behind them.
   *
   * Two calls that return the same revision of a lead must return the same state and kinds. A lead that has changed again
   * since its distribution is therefore left to the next call.
   */
  listDeliveries(number: Consumer['number'], limit: number): Promise<ConsumerChanges | null>;

  /**
   * Deletes the deliveries of a consumer up to the given revisions, including those set aside. A distribution of the
   * same change that another process has begun must not restore them.
   *
   * @param acknowledgements at most MAX_ACKNOWLEDGEMENTS
   */
  acknowledgeDeliveries(number: Consumer['number'], acknowledgements: readonly Acknowledgement[]): Promise<StateCounts>;

  /**
   * Sets aside waiting deliveries up to the given revisions. They are not listed until their retry time, until
   * takeBackDeliveries, or until the lead changes.
   *
   * @param leads at most MAX_ACKNOWLEDGEMENTS
   */
  setAsideDeliveries(number: Consumer['number'], leads: readonly SetAside[], now: Date): Promise<StateCounts>;

  /** Requeues some deliveries whose retry time has come. */
  returnDeferredDeliveries(number: Consumer['number'], now: Date): Promise<void>;

  /** Requeues deliveries that were set aside; returns their number. @param leads at most MAX_ACKNOWLEDGEMENTS */
  takeBackDeliveries(number: Consumer['number'], leads: readonly LeadOfStudio[]): Promise<number>;

  /** Lists the deliveries that a consumer has set aside, in the order of `due`. @param after null: from the start */
  listDeliveriesSetAside(
    number: Consumer['number'],
    after: SetAsidePosition | null,
    limit: number,
  ): Promise<LeadSetAside[]>;

  /** Distributes changes, and counts a consumer's deliveries, up to `bound`. */
  measureDeliveries(number: Consumer['number'], bound: number): Promise<MeasuredDeliveries>;
}
