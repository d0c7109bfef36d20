import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PLANTED, ROOT } from '../tools/processes.ts';

/** The executable of the command line. */
export const CLI = join(ROOT, 'operator/cli.ts');

const execute = promisify(execFile);

/** A command that `command-server.ts` runs. */
export interface CommandRun {
  readonly args: readonly string[];
  readonly databaseUrl: string | undefined;
  readonly input: string;
  readonly cwd: string;
  /** The error code with which each write to standard output fails. */
  readonly outputFault?: 'ENOSPC' | 'EPIPE' | undefined;
}

export interface CommandOutcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs an executable to its end, without settings from the environment. A command of the command line with no setting but
 * DATABASE_URL runs in the process of earlier commands, which is faster.
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
    cwd = process.cwd(),
    outputFault,
  }: Partial<Omit<CommandRun, 'args' | 'databaseUrl'>> & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const { DATABASE_URL: databaseUrl, ...others } = env;
  if (command === CLI && Object.keys(others).length === 0)
    return executedByServer({ args, databaseUrl, input, cwd, outputFault });
  const executing = execute(command, args, { env: environment(env), maxBuffer: 1e8, cwd });
  executing.child.stdin?.end(input);
  return executing;
}

function environment(env: Readonly<Record<string, string>> = {}) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_COMPILE_CACHE, ...PLANTED, ...env };
}

let server: { readonly child: ChildProcess; readonly exited: Promise<never[]> } | undefined;
/** The end of the last command: commands run one after the other. */
let last: Promise<unknown> = Promise.resolve();

async function executedByServer(run: CommandRun): Promise<CommandOutcome> {
  server ??= startServer();
  const { child, exited } = server;
  const running = last.then(async () => {
    const answered = once(child, 'message') as Promise<[CommandOutcome]>;
    child.send(run);
    const [outcome] = await Promise.race([answered, exited]);
    return outcome ?? { status: 1, stdout: '', stderr: 'the process of commands ended' };
  });
  last = running.catch(() => {});
  const outcome = await running;
  if (outcome.status === 0) return outcome;
  const message = `Command failed: ${run.args.join(' ')}\n${outcome.stderr}`;
  throw Object.assign(new Error(message), outcome, { code: outcome.status });
}

function startServer() {
  const child = fork(join(import.meta.dirname, 'command-server.ts'), { env: environment(), execArgv: [] });
  // The server ends with this process and does not keep it alive.
  child.unref();
  child.channel?.unref();
  const exited = once(child, 'exit').then(() => {
    server = undefined;
    return [];
  });
  return { child, exited };
}
