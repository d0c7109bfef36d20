/** Returns the current time; whole milliseconds. */
export type Clock = () => Date;

/** The clock in production. */
export const systemClock: Clock = () => new Date();
