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
  /** The consumer once the changes were distributed. */
  readonly consumer: Consumer;
  readonly changes: readonly LeadChange[];
  /** Whether all changes were distributed; otherwise there may be more. */
  readonly isComplete: boolean;
}

export interface MeasuredDeliveries {
  /** Deliveries that wait, or will after their retry time; since the first change of a waiting one. */
  readonly waiting: WaitingChanges;
  /** Deliveries without a retry time; since the first of them was set aside. */
  readonly setAside: WaitingChanges;
  /** Whether all changes were distributed; otherwise more may wait. */
  readonly isComplete: boolean;
}

/** The deliveries of consumers. See ConsumerStore. */
export interface DeliveryStore {
  /**
   * Distributes pending changes. A consumer that is created afterwards receives only later ones. One call distributes
   * some; returns whether none was left.
   */
  distributeLeadChanges(): Promise<boolean>;

  /**
   * Returns leads for which a consumer has deliveries, in their current, durable state, with their enquiries and
   * revision; null: the consumer was removed. Leads are ordered by their first unacknowledged change, as far as the
   * writers' clocks agree. Must skip any number of unreadable ones. Only after thousands of those may a call return
   * none although there are others, which later calls then return.
   *
   * An equal revision of a lead must come with an equal state and equal kinds. A lead that changed again since its
   * distribution is therefore left to the next call.
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

  /** Requeues some deferred deliveries whose retry time has come. */
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
