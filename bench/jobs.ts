import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** A process's reply to a job. */
type Outcome<Result> = { readonly result: Result } | { readonly error: string };

/** In a child process: performs the jobs that its parent sends, and exits with its parent. */
export function serveJobs<Job>(perform: (job: Job) => Promise<unknown>): void {
  process.on('message', (job: Job) => {
    perform(job).then(
      (result) => process.send?.({ result }),
      (error: Error) => process.send?.({ error: error.message }),
    );
  });
  endWithParent();
}

/** Exits this process on SIGTERM or when its parent has exited. */
export function endWithParent(): void {
  process.once('SIGTERM', () => process.exit(0));
  process.once('disconnect', () => process.exit(0));
}

/** Sends a job to a process; rejects when the job fails. */
export async function perform<Result>(child: ChildProcess, job: object): Promise<Result> {
  child.send(job);
  const outcome = await nextMessage<Outcome<Result>>(child);
  if ('error' in outcome) throw new Error(outcome.error);
  return outcome.result;
}

/** Waits for the next message of a process; rejects when the process exits. */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const arrived = new AbortController();
  try {
    return await Promise.race([
      once(child, 'message', arrived).then(([message]) => message as Message),
      once(child, 'exit', arrived).then(([code, signal]) => {
        throw new Error(`${child.spawnargs.at(-1)} exited (${signal ?? `status ${code}`})`);
      }),
    ]);
  } finally {
    arrived.abort();
  }
}
