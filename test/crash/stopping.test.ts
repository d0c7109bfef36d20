import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { times } from '../support/builders.ts';
import { allLeads, arrangeStudio, type CoreClients } from '../support/core-clients.ts';
import { aCapture, LEADS } from '../support/service.ts';
import { sizeOf } from '../support/size-of.ts';
import { clientsOf, type Deployment, deployApart, newSqliteUrl } from './deployment.ts';

/** The number of times each process is stopped. */
const STOPS = sizeOf('CRASH_STOPS', { usual: 2, soak: 20 });

/** How long a stopping process continues to serve; milliseconds. */
const DRAIN_MS = 500;

const CALLERS = 8;

/** The outcome of a request. */
interface Outcome {
  /** Its idempotency key, and the note of its lead. */
  readonly key: string;
  /** Undefined when no response had begun. */
  readonly status: number | undefined;
  /** Whether a response had begun and was cut off. */
  readonly isCut: boolean;
}

// @proves crashes-7
test.each(['gateway', 'core'])(
  'the %s stops under load after one signal or two: accepted requests are answered completely, and others write nothing',
  async (part) => {
    const deployment = await deployApart({ DATABASE_URL: newSqliteUrl(), SHUTDOWN_DRAIN_MS: `${DRAIN_MS}` });
    const core = clientsOf(deployment);
    for (let stop = 0; stop < STOPS; stop += 1) {
      // The second signal arrives before, during and after the drain period.
      const { status, broken } = await stopUnderLoad(deployment, core, part, stop % 2 === 0 ? undefined : stop * 150);
      // A process that does not stop within 10 s exits with another status.
      expect({ stop, status, broken }).toEqual({ stop, status: 0, broken: [] });
    }
  },
);

/** @param againMs the delay of a second signal after the first; undefined: none */
async function stopUnderLoad(deployment: Deployment, core: CoreClients, part: string, againMs: number | undefined) {
  const { studioId, secret } = await arrangeStudio(core);
  const outcomes: Outcome[] = [];
  let isOver = false;
  const callers = times(CALLERS, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isOver) {
      const outcome = await create(deployment.gatewayUrl, agent, secret);
      outcomes.push(outcome);
      if (outcome.status !== 201) await sleep(10);
    }
    agent.destroy();
  });
  const created = () => outcomes.filter(({ status }) => status === 201).length;
  try {
    await vi.waitUntil(() => created() >= 40, { timeout: 100_000 });
    const running = deployment.process(part);
    running.child.kill('SIGTERM');
    if (againMs !== undefined) setTimeout(() => running.child.kill('SIGTERM'), againMs);
    const status = await running.ended();
    await deployment.restart(part);
    await deployment.serves();
    isOver = true;
    await Promise.all(callers);
    return { status, broken: await brokenPromises(core, studioId, outcomes) };
  } finally {
    isOver = true;
  }
}

async function brokenPromises(core: CoreClients, studioId: string, outcomes: readonly Outcome[]): Promise<string[]> {
  const written = new Set((await allLeads(core, studioId)).map(({ note }) => note));
  return outcomes.flatMap(({ key, status, isCut }) => {
    if (isCut) return [`${key}: the answer ${status} was cut`];
    if (status === 201) return written.has(key) ? [] : [`${key}: was answered as created, and is not there`];
    if (status !== undefined && status !== 503) return [`${key}: was answered ${status}`];
    return written.has(key) ? [`${key}: is there, and was answered ${status ?? 'nothing'}`] : [];
  });
}

function create(gatewayUrl: string, agent: Agent, secret: string): Promise<Outcome> {
  const key = randomUUID();
  return new Promise((resolve) => {
    const sent = request(`${gatewayUrl}${LEADS}`, {
      agent,
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': key },
    });
    let status: number | undefined;
    sent.on('response', (response) => {
      status = response.statusCode;
      response.resume().on('close', () => resolve({ key, status, isCut: !response.complete }));
    });
    sent.on('error', () => resolve({ key, status, isCut: status !== undefined }));
    sent.end(JSON.stringify(aCapture({ note: key })));
  });
}
