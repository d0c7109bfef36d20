import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CallerEntries, tokenHash } from '../../src/callers-file.ts';
import type { CallerRole } from '../../src/domain/caller.ts';
import { temporaryFolder } from '../tools/processes.ts';

/** Returns a callers file that is replaced atomically, as an operator or a tool does it. */
export function writeCallersFile(callers: CallerEntries) {
  const path = join(temporaryFolder(), 'callers.json');
  const write = (text: string) => {
    writeFileSync(`${path}.next`, text);
    renameSync(`${path}.next`, path);
  };
  const put = (entries: CallerEntries) => write(JSON.stringify({ callers: entries }));
  put(callers);
  return { path, put, write };
}

/** Returns a caller with one token. */
export const entry = (token: string, may: readonly CallerRole[], studios?: readonly string[]) => ({
  may,
  tokens: [{ sha256: tokenHash(token) }],
  ...(studios && { studios }),
});
