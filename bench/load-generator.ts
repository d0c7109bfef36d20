/**
 * The load, in a process of its own: gets to know targets, then drives them, as its parent says.
 *
 * It shares the processors with what it measures, so what it takes itself counts. Against a trivial server, on the same
 * machine, a creation took it 28 µs of processor time, half of which the kernel needs to send and receive; autocannon 9
 * took 90. That is why it writes and reads HTTP itself (connection.ts).
 */
import { type Asking, openAsking } from './asking.ts';
import { drive, type Pace } from './drive.ts';
import { serveJobs } from './jobs.ts';
import type { KeyOfStudio, Target } from './lead-requests.ts';
import type { LoadResult } from './tally.ts';
import { EvenWorkload, EXPECTED_STATUS, type Requests, type Scenario, Workload } from './workload.ts';

/** Something to do. */
export type LoadJob =
  /** Get to know a target: create so many leads there, and page through them. No result. */
  | {
      readonly kind: 'preload';
      readonly workload: string;
      readonly target: Target;
      readonly leads: number;
      readonly connections: number;
    }
  /** Get to know a target by many keys, to be used evenly: ask for a page with each. No result. */
  | {
      readonly kind: 'know-keys';
      readonly workload: string;
      readonly url: string;
      readonly keys: readonly KeyOfStudio[];
      readonly pageSize: number;
      readonly connections: number;
    }
  /** Drive an address with what it knows. Gives a LoadResult. */
  | {
      readonly kind: 'drive';
      readonly workload: string;
      readonly url: string;
      readonly scenario: Scenario;
      readonly pace: Pace;
    };

/** What it knows of each target, by the target's name. */
const workloads = new Map<string, Requests>();

serveJobs(async (job: LoadJob): Promise<LoadResult | null> => {
  if (job.kind === 'preload') {
    workloads.set(job.workload, await preload(job.target, job.leads, job.connections));
    return null;
  }
  if (job.kind === 'know-keys') {
    workloads.set(job.workload, await knowKeys(job));
    return null;
  }
  const { url, scenario, pace } = job;
  const workload = workloads.get(job.workload);
  if (!workload) throw new Error(`nothing is known of ${job.workload}`);
  return drive(new URL(url), { next: () => workload.request(scenario), status: EXPECTED_STATUS[scenario] }, pace);
});

/** Afterwards nothing is done for the first time in a while. */
async function knowKeys({ url, keys, pageSize, connections }: Extract<LoadJob, { kind: 'know-keys' }>) {
  const workload = new EvenWorkload(
    keys.map((key) => ({ url, ...key })),
    pageSize,
  );
  const pages = workload.everyPage();
  const askForSome = async () => {
    const connection = await openAsking(url);
    for (const page of pages) await askFor(EXPECTED_STATUS.list, page, connection);
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, askForSome));
  return workload;
}

async function preload(target: Target, leads: number, connections: number): Promise<Workload> {
  const workload = new Workload(target);
  let left = leads;
  const createSome = async () => {
    const connection = await openAsking(target.url);
    while (left > 0) {
      left -= 1;
      const creation = workload.creation();
      const { lead } = await askFor(EXPECTED_STATUS.create, creation, connection);
      workload.know(creation, lead.id);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, createSome));

  const connection = await openAsking(target.url);
  let cursor: string | null = null;
  do cursor = (await askFor(EXPECTED_STATUS.list, workload.page(cursor), connection)).nextCursor;
  while (cursor !== null);
  connection.close();
  return workload;
}

/** Asks, and gives the JSON of the answer; rejects when its status is another. */
async function askFor(status: number, request: Buffer, connection: Asking) {
  const answer = await connection.ask(request);
  if (answer.status !== status) throw new Error(`the answer was ${answer.status}: ${answer.text}`);
  return JSON.parse(answer.text);
}
