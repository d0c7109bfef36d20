/**
 * Runs commands of the command line one after the other in one process for `command-line.ts`, because most commands take
 * less time than a start of Node.
 */
import { PassThrough } from 'node:stream';
import { addEveryCommand } from '../../operator/commands/every-command.ts';
import { program } from '../../operator/commands/program.ts';
import type { CommandOutcome, CommandRun } from './command-line.ts';

/** Thrown in place of the exit when a command ends the process. */
class Exit extends Error {}

addEveryCommand();
process.exit = (status) => {
  process.exitCode = status;
  throw new Exit();
};
process.on('message', async ({ args, databaseUrl, input, cwd, outputFault }: CommandRun) => {
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (text: unknown, ...more: unknown[]) => {
      const fault = name === 'stdout' && outputFault;
      if (!fault) texts[name] += text;
      const done = more.at(-1) as ((error?: Error) => void) | undefined;
      done?.(fault ? Object.assign(new Error(`${fault}: write`), { code: fault }) : undefined);
      return true;
    };
  }
  Object.defineProperty(process, 'stdin', { value: new PassThrough().end(input), configurable: true });
  if (databaseUrl === undefined) delete process.env.DATABASE_URL;
  else process.env.DATABASE_URL = databaseUrl;
  process.chdir(cwd);
  process.exitCode = 0;
  await program.parseAsync(args, { from: 'user' }).catch((error) => {
    if (!(error instanceof Exit)) throw error;
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal);
  process.send?.({ status: Number(process.exitCode), ...texts } satisfies CommandOutcome);
});
