import { StoreUnavailable } from './port/faults.ts';

/** The rule of keys of each studio on MongoDB: one with another was last written by a release before 1.2. */
export const CONTACT_RULE_VERSION = 2;

/** @param database the subject of the message */
export const ofEarlierRelease = (database: string): StoreUnavailable =>
  new StoreUnavailable(
    `${database} has data of a release before 1.2: start each release after that one first, up to 1.2, then this one`,
  );
