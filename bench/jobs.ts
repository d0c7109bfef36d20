import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** What a process says of a job that it was given. */
type Outcome<Result> = { readonly result: Result } | { readonly error: string };

/** In a process of the benchmark: does the jobs that its parent sends, one after the other, and ends with its parent. */
export function serveJobs<Job>(perform: (job: Job) => Promise<unknown>): void {
  process.on('message', (job: Job) => {
    perform(job).then(
      (result) => process.send?.({ result }),
      (error: Error) => process.send?.({ error: error.message }),
    );
  });
  endWithParent();
}

/** Ends this process when its parent says so, or is gone. */
export function endWithParent(): void {
  process.once('SIGTERM', () => process.exit(0));
  process.once('disconnect', () => process.exit(0));
}

/** Has a process do a job; rejects when it cannot. */
export async function perform<Result>(child: ChildProcess, job: object): Promise<Result> {
  child.send(job);
  const outcome = await nextMessage<Outcome<Result>>(child);
  if ('error' in outcome) throw new Error(outcome.error);
  return outcome.result;
}

/** Waits for the next message of a process; rejects when the process ends instead. */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const arrived = new AbortController();
  try {
    return await Promise.race([
      once(child, 'message', arrived).then(([message]) => message as Message),
      once(child, 'exit', arrived).then(([code, signal]) => {
        throw new Error(`${child.spawnargs.at(-1)} has ended (${signal ?? `status ${code}`})`);
      }),
    ]);
  } finally {
    arrived.abort();
  }
}
