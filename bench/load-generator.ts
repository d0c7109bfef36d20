/**
 * The load generator, a process that prepares and drives targets for its parent.
 *
 * It shares the processors with the targets, so its own processor time matters. Against a trivial server on the same machine, a creation
 * took it 28 µs, half of which the kernel needs to send and receive; autocannon 9 took 90. Therefore it implements HTTP itself
 * (connection.ts).
 */
import { type Asking, openAsking } from './asking.ts';
import { drive, type Pace } from './drive.ts';
import { serveJobs } from './jobs.ts';
import type { KeyOfStudio, Target } from './lead-requests.ts';
import type { LoadResult } from './tally.ts';
import { EvenWorkload, EXPECTED_STATUS, type Requests, type Scenario, Workload } from './workload.ts';

export type LoadJob =
  /** Creates leads on a target and pages through them. No result. */
  | {
      readonly kind: 'preload';
      readonly workload: string;
      readonly target: Target;
      readonly leads: number;
      readonly connections: number;
    }
  /** Prepares a target with many keys, which are used evenly: reads a page with each. No result. */
  | {
      readonly kind: 'know-keys';
      readonly workload: string;
      readonly url: string;
      readonly keys: readonly KeyOfStudio[];
      readonly pageSize: number;
      readonly connections: number;
    }
  /** Drives a prepared target. Returns a LoadResult. */
  | {
      readonly kind: 'drive';
      readonly workload: string;
      readonly url: string;
      readonly scenario: Scenario;
      readonly pace: Pace;
    };

/** The workloads of the prepared targets, by name. */
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
  if (!workload) throw new Error(`${job.workload} was not prepared`);
  return drive(new URL(url), { next: () => workload.request(scenario), status: EXPECTED_STATUS[scenario] }, pace);
});

/** Uses each key once, to fill the caches. */
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

/** Sends a request and returns the JSON of the response; rejects when its status is not the expected one. */
async function askFor(status: number, request: Buffer, connection: Asking) {
  const answer = await connection.ask(request);
  if (answer.status !== status) throw new Error(`unexpected response ${answer.status}: ${answer.text}`);
  return JSON.parse(answer.text);
}
