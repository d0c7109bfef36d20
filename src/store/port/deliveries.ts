import type { Consumer } from '../../domain/consumer.ts';
import type { Acknowledgement, LeadChange, LeadSetAside, SetAside, Settled } from '../../domain/lead-change.ts';

/** A lead by its names. */
export type LeadOfStudio = Pick<Acknowledgement, 'studioId' | 'leadId'>;

export interface WaitingChanges {
  readonly leads: number;
  readonly since: Date | null;
}

export interface ConsumerChanges {
  /** As it was once the changes were distributed. */
  readonly consumer: Consumer;
  readonly changes: readonly LeadChange[];
  /** Whether all changes were distributed; otherwise there may be others. */
  readonly isComplete: boolean;
}

export interface MeasuredDeliveries {
  /** The deliveries that wait, or will by themselves; since the first change of one that waits. */
  readonly waiting: WaitingChanges;
  /** The deliveries that do not come again by themselves; since the first of them was set aside. */
  readonly setAside: WaitingChanges;
  /** Whether all changes were distributed; otherwise more may wait. */
  readonly isComplete: boolean;
}

/** The deliveries of the consumers, which ConsumerStore describes. */
export interface DeliveryStore {
  /**
   * Distributes what is marked: a consumer that is created later is only sent later changes. Without that, it is also sent those that
   * are marked. A call distributes some; returns whether none was left.
   */
  distributeLeadChanges(): Promise<boolean>;

  /**
   * Returns leads that a consumer has deliveries of, in their current state with their enquiries, which must be durable, and with
   * their current revision; null: it was removed. Leads are ordered by their first unacknowledged change, as far as the clocks of
   * the writers agree. Must skip any number of unreadable ones. Only after thousands of those may a call return none although
   * there are others, which later calls then return.
   *
   * An equal revision of a lead must come with an equal state and equal kinds, so a lead that has changed again since the
   * distribution is left to the next call.
   */
  listDeliveries(number: Consumer['number'], limit: number): Promise<ConsumerChanges | null>;

  /**
   * Ends the deliveries of a consumer whose revision is at most the given one, set aside or not. A distribution of the same
   * change that another process has begun must not bring them back.
   *
   * @param acknowledgements at most MAX_ACKNOWLEDGEMENTS
   */
  acknowledgeDeliveries(number: Consumer['number'], acknowledgements: readonly Acknowledgement[]): Promise<Settled>;

  /**
   * Sets deliveries aside that wait, and whose revision is at most the given one: they are not listed until they come again, by
   * themselves, by takeBackDeliveries, or because the lead changes.
   *
   * @param leads at most MAX_ACKNOWLEDGEMENTS
   */
  setAsideDeliveries(number: Consumer['number'], leads: readonly SetAside[], now: Date): Promise<Settled>;

  /** Has some deliveries that were set aside until now, or before, wait again. */
  returnDeferredDeliveries(number: Consumer['number'], now: Date): Promise<void>;

  /** Has deliveries wait again that were set aside; returns their number. @param leads at most MAX_ACKNOWLEDGEMENTS */
  takeBackDeliveries(number: Consumer['number'], leads: readonly LeadOfStudio[]): Promise<number>;

  /** Lists what a consumer has set aside, in the order of `due`. @param after null: from the start */
  listDeliveriesSetAside(
    number: Consumer['number'],
    after: Pick<LeadSetAside, 'due' | 'studioId' | 'leadId'> | null,
    limit: number,
  ): Promise<LeadSetAside[]>;

  /** Distributes changes, and counts what a consumer has to handle, up to `bound`. */
  measureDeliveries(number: Consumer['number'], bound: number): Promise<MeasuredDeliveries>;
}
