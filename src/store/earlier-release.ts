import { StoreUnavailable } from './port/faults.ts';

/** The `claimVersion` of every studio on MongoDB. Another one means that a release before 1.2 wrote last. */
export const CONTACT_RULE_VERSION = 2;

/** @param database the subject of the message */
export const earlierReleaseError = (database: string): StoreUnavailable =>
  new StoreUnavailable(
    `${database} has data of a release before 1.2: start each later release up to 1.2 first, then this one`,
  );
