import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How much memory is in use, once everything is collected that can be. */
export function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
