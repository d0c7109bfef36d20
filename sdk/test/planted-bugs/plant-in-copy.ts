import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientPatch } from './typescript-bugs.ts';

/** Plants a fault in a copy of a client; the file is a path within the copy. */
export function plantInCopy(folder: string, { file, find, put }: ClientPatch): void {
  const path = join(folder, file);
  const source = readFileSync(path, 'utf8');
  const words = find.trim().split(/\s+/).map(RegExp.escape).join('\\s+');
  const [before = '', after, ...more] = source.split(new RegExp(words));
  if (after === undefined || more.length > 0) throw new Error(`${file} must contain this exactly once: ${find}`);
  writeFileSync(path, before + put + after);
}
