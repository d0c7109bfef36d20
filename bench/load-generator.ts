/**
 * The load, in a process of its own: gets to know targets, then drives them, as its parent says.
 *
 * It shares the processors with what it measures, so what it takes itself counts. Against a trivial server, on the same
 * machine, a creation took it 28 µs of processor time, half of which the kernel needs to send and receive; autocannon 9
 * took 90. That is why it writes and reads HTTP itself (connection.ts).
 */
import { randomUUID } from 'node:crypto';
import { openConnection } from './connection.ts';
import { drive, type Pace } from './drive.ts';
import { serveJobs } from './jobs.ts';
import type { LoadResult } from './tally.ts';
import { EXPECTED_STATUS, type Scenario, type Target, Workload } from './workload.ts';

/** Something to do. */
export type LoadJob =
  /** Get to know a target: create so many leads there, and page through them. No result. */
  | { readonly kind: 'preload'; readonly target: Target; readonly leads: number; readonly connections: number }
  /** Drive a target that it knows. Gives a LoadResult. */
  | { readonly kind: 'drive'; readonly url: string; readonly scenario: Scenario; readonly pace: Pace };

/** What it knows of each target, by its address. */
const workloads = new Map<string, Workload>();

serveJobs(async (job: LoadJob): Promise<LoadResult | null> => {
  if (job.kind === 'preload') {
    workloads.set(job.target.url, await preload(job.target, job.leads, job.connections));
    return null;
  }
  const { url, scenario, pace } = job;
  const workload = workloads.get(url);
  if (!workload) throw new Error(`nothing is known of ${url}`);
  return drive(new URL(url), { next: () => workload.request(scenario), status: EXPECTED_STATUS[scenario] }, pace);
});

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
    /** Gives the JSON of an answer; rejects when its status is another. */
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
