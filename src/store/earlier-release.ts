import { StoreUnavailable } from './port/faults.ts';

/** The key rule of every studio on MongoDB. Another one means that a release before 1.2 wrote last. */
export const CONTACT_RULE_VERSION = 2;

/** @param database the subject of the message */
export const ofEarlierRelease = (database: string): StoreUnavailable =>
  new StoreUnavailable(
    `${database} has data of a release before 1.2: start each release after that one first, up to 1.2, then this one`,
  );
