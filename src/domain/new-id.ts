import { v7 } from 'uuid';

/** Returns a new id: a version 7 UUID in lower case, higher than all ids created before in this process. */
export type NewId = () => string;

/** The id generator in production. @rule 2.1.id 2.1.version-7 4.3.newest-first */
export const newId: NewId = () => v7();

/** Returns a new id with a given time. Ids with the same time are in no particular order. */
export const newIdAt = (time: Date): string => v7({ msecs: time.getTime() });

/** Returns the creation time of a version 7 id; whole milliseconds. */
export function timeOfId(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
