/**
 * The load, in a process of its own: does the jobs that its parent sends, one after the other, and sends back what came
 * of them.
 */
import { randomUUID } from 'node:crypto';
import { openConnection } from './connection.ts';
import { type DriveResult, drive, type Pace } from './drive.ts';
import { EXPECTED_STATUS, type Scenario, type Target, Workload } from './workload.ts';

/** Something to do. */
export type Job =
  /** Get to know a target: create so many leads there, and page through them. */
  | { readonly kind: 'preload'; readonly target: Target; readonly leads: number; readonly connections: number }
  /** Drive a target that it knows. */
  | { readonly kind: 'drive'; readonly url: string; readonly scenario: Scenario; readonly pace: Pace };

/** What came of a job; null: it has no result. */
export type JobResult = { readonly result: DriveResult | null } | { readonly error: string };

const workloads = new Map<string, Workload>();

process.on('message', (job: Job) => {
  perform(job).then(
    (result) => process.send?.({ result } satisfies JobResult),
    (error: Error) => process.send?.({ error: error.message } satisfies JobResult),
  );
});
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
process.on('SIGINT', () => {});

async function perform(job: Job): Promise<DriveResult | null> {
  if (job.kind === 'preload') {
    workloads.set(job.target.url, await preload(job.target, job.leads, job.connections));
    return null;
  }
  const workload = workloads.get(job.url);
  if (!workload) throw new Error(`nothing is known of ${job.url}`);
  const { scenario, url, pace } = job;
  const requests = { next: () => workload.request(scenario), status: EXPECTED_STATUS[scenario] };
  return drive(new URL(url), requests, pace);
}

async function preload(target: Target, leads: number, connections: number): Promise<Workload> {
  const workload = new Workload(target);
  let left = leads;
  const createSome = async () => {
    const { ask, close } = await openAsking(target.url);
    while (left > 0) {
      left -= 1;
      const creation = workload.creation(randomUUID());
      const { lead } = await ask(creation, EXPECTED_STATUS.create);
      workload.know(creation, lead.id);
    }
    close();
  };
  await Promise.all(Array.from({ length: connections }, createSome));

  const { ask, close } = await openAsking(target.url);
  let cursor: string | null = null;
  do cursor = (await ask(workload.page(cursor), EXPECTED_STATUS.list)).nextCursor;
  while (cursor !== null);
  close();
  return workload;
}

/** A connection on which one asks and waits for the answer. */
async function openAsking(url: string) {
  let pending = Promise.withResolvers<{ status: number; text: string }>();
  const connection = await openConnection(new URL(url), {
    onAnswer: (status, body) => pending.resolve({ status, text: body.toString() }),
    onEnd: (reason) => pending.reject(new Error(reason)),
  });
  return {
    /** Gives the JSON of an answer; rejects when it has another status. */
    async ask(request: Buffer, expected: number) {
      pending = Promise.withResolvers();
      connection.send(request);
      const { status, text } = await pending.promise;
      if (status !== expected) throw new Error(`${url} answered ${status}: ${text}`);
      return JSON.parse(text);
    },
    close: () => connection.close(),
  };
}
