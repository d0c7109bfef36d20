import { StoreUnavailable } from './store.ts';

/** A studio has this rule of keys once all is done that release 1.1 began. Release 1.2 refuses others. */
export const CONTACT_RULE_VERSION = 2;

/** @param database the subject of the message */
export const ofEarlierRelease = (database: string): StoreUnavailable =>
  new StoreUnavailable(
    `${database} has data of a release before 1.2: start each release after that one first, up to 1.2, then this one`,
  );
