import { v7 } from 'uuid';

/** Makes ids: UUIDs of version 7 in lower case, each higher than the one before in the same process. */
export type NewId = () => string;

/** The maker of ids in production. @rule 2.1.id 2.1.version-7 4.3.newest-first */
export const newId: NewId = () => v7();

/** An id that carries another moment than now; of one moment, ids come in any order. */
export const newIdAt = (time: Date): string => v7({ msecs: time.getTime() });

/** When a version 7 id was made; whole milliseconds. */
export function timeOfId(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
