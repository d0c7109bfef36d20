import { setFlagsFromString } from 'node:v8';

/**
 * Stops V8 from allocating objects directly in the old generation because earlier ones from the same place lived long.
 * Under load those objects belong to requests, and everything that a dead one references survives until the next major
 * collection: each minor collection until then copies it and takes twice as long.
 */
export function disablePretenuring(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}
