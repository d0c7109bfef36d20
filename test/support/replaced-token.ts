import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { CoreToken } from '../../common/core-connection.ts';
import { file } from '../../common/settings.ts';

/** Returns the token of a process that started with one token and whose file now has another. */
export async function aReplacedToken(former: string, newest: string): Promise<CoreToken> {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  try {
    const path = join(folder, 'token');
    writeFileSync(path, former);
    const token = new CoreToken({ CORE_TOKEN: undefined, coreTokenFile: file(path) });
    const reloaded = Promise.withResolvers<string>();
    const stopWatching = token.watch(pino({}, { write: reloaded.resolve }));
    writeFileSync(path, newest);
    await reloaded.promise;
    stopWatching();
    return token;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
