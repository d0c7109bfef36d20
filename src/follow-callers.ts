import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type CallerEntries, parseCallers } from './callers-file.ts';
import type { CallersFile } from './config.ts';

/** How often the file is looked at; milliseconds. Its folder is not watched: that misses what is mounted or linked anew. */
const LOOK_MS = 1000;

/**
 * Has what a file of callers says taken over whenever it says something else. As long as it cannot be used, what it said before
 * holds.
 *
 * @returns what ends that
 */
export function followCallers(
  { path, text: read }: CallersFile,
  callers: { replace(entries: CallerEntries): void },
  log: Logger,
): () => void {
  const ended = new AbortController();
  follow().catch((error) => {
    if (!ended.signal.aborted) throw error;
  });
  return () => ended.abort();

  async function follow() {
    for (let known = read, complaint = ''; ; ) {
      await sleep(LOOK_MS, undefined, { signal: ended.signal, ref: false });
      try {
        const text = await readFile(path, 'utf8');
        if (text === known && complaint === '') continue;
        const entries = parseCallers(text);
        callers.replace(entries);
        if (text !== known) log.info({ callers: Object.keys(entries).length }, 'the file of callers was read again');
        [known, complaint] = [text, ''];
      } catch (error) {
        const { message } = error as Error;
        if (message !== complaint)
          log.error({ path, reason: message }, 'the file of callers cannot be used: what it said before holds');
        complaint = message;
      }
    }
  }
}
