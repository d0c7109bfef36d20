import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { World } from '../world.ts';

/** Checks that only the owner can access the files of a local database. */
export function fileViolations({ databaseUrl, processes }: World): string[] {
  const [, path] = /^sqlite:(.*)$/.exec(databaseUrl) ?? [];
  if (!path) return [];
  // A separate disk of the database is mounted only for the processes of the product.
  const [{ pid } = { pid: process.pid }] = processes();
  const folder = join(`/proc/${pid}/root`, dirname(path));
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => ({ name, mode: statSync(join(folder, name)).mode & 0o777 }))
    .filter(({ mode }) => (mode & 0o077) !== 0)
    .map(({ name, mode }) => `${name} may be opened by others: ${mode.toString(8)}`);
}
