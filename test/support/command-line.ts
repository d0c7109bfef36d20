import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PLANTED, ROOT } from './processes.ts';

/** The executable of the command line. */
export const CLI = join(ROOT, 'operator/cli.ts');

const execute = promisify(execFile);

/**
 * Runs an executable to its end. No settings are inherited from the environment.
 *
 * @returns both outputs
 * @throws an Error with both outputs, and the exit status as `code`, unless that is 0
 */
export async function executed(
  command: string,
  args: readonly string[],
  {
    env = {},
    input = '',
    cwd,
  }: { readonly env?: Readonly<Record<string, string>>; readonly input?: string; readonly cwd?: string } = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const executing = execute(command, args, {
    env: { PATH, NODE_COMPILE_CACHE, ...PLANTED, ...env },
    maxBuffer: 1e8,
    cwd,
  });
  executing.child.stdin?.end(input);
  return executing;
}
