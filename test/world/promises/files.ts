import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { World } from '../world.ts';

/** Files of a database on this machine are for their owner alone. */
export function brokenOfFiles({ databaseUrl }: World): string[] {
  const [, path] = /^sqlite:(.*)$/.exec(databaseUrl) ?? [];
  const folder = path && dirname(path);
  // A disk of its own is seen from within only.
  if (!folder || !existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => ({ name, mode: statSync(join(folder, name)).mode & 0o777 }))
    .filter(({ mode }) => (mode & 0o077) !== 0)
    .map(({ name, mode }) => `${name} may be opened by others: ${mode.toString(8)}`);
}
