import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { drive } from '../../bench/drive.ts';
import { EXPECTED, Workload } from '../../bench/workload.ts';
import { CORE_CALL_MS } from '../../common/deadlines.ts';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { times } from '../support/builders.ts';
import { allLeads, arrangeStudio, type CoreClients, type StudioWithKey } from '../support/core-clients.ts';
import { lines } from '../support/raw-http.ts';
import { aCapture, LEADS } from '../support/service.ts';
import { testSize } from '../tools/test-size.ts';
import { connectClients, type Deployment, deployApart, newSqliteUrl } from './deployment.ts';
import { memoryMb } from './memory.ts';

/**
 * How long throughput under overload is measured; milliseconds. Usually not at all, because other processes share the
 * machine.
 */
const MEASURED_MS = 1000 * testSize('OVERLOAD_SECONDS', { usual: 0, soak: 10 });

/** The number of pending creations a gateway allows, and the number from which it refuses new ones. */
const MAX_PENDING_REQUESTS = 2048;
const BUSY_THRESHOLD = 1024;

/** More callers than may be pending. */
const CALLERS = MAX_PENDING_REQUESTS + 300;

/** The number of addresses that send unknown keys. */
const ADDRESSES = 20;

/** The allowed outcomes besides success; each invites the caller to retry. */
const OUTCOME_UNKNOWN = '503, may come again';
const REFUSED = `${OUTCOME_UNKNOWN}: nothing was written`;

/** The gateway's log message about refused requests. */
const LOG_MESSAGE = 'requests refused: too many are waiting for the core';

/** The number of attempts on a machine that is busy with other work. */
const MAX_TRIES = 3;

/** The batch size of requests that must not queue. */
const FEW = 100;

/** The limit of memory growth of core and gateway; megabytes. Three times the growth that was measured. */
const MAX_MEMORY_MB = 400;

/** The number of slow connections, and how long after opening all of them must be closed; milliseconds. */
const SLOW = 1000;
const CLOSED_WITHIN_MS = MEASURED_MS > 0 ? 15_000 : 45_000;

describe('overload', () => {
  // @proves crashes-8 node-20 bounds-17 bounds-20 bounds-30
  test('an overload is refused while the core is suspended, and served again when it resumes', {
    tags: ['7.overload', '7.order', '7.wait'],
  }, async () => {
    let asked = await askWhileSuspended();
    for (let tries = 1; asked.isSlow && tries < MAX_TRIES; tries += 1) asked = await askWhileSuspended();
    const { service, callers, isSlow, withoutKey, outcomes, grownMb } = asked;
    expect(new Set(outcomes.keys())).toEqual(new Set([OUTCOME_UNKNOWN, REFUSED]));
    const waited = outcomes.get(OUTCOME_UNKNOWN)?.length;
    if (isSlow) expect(waited).toBeGreaterThanOrEqual(BUSY_THRESHOLD);
    else expect(waited).toBe(BUSY_THRESHOLD);
    expect(withoutKey).toEqual([isSlow ? expect.any(Number) : 503, 404]);
    expect(grownMb).toBeLessThan(MAX_MEMORY_MB);
    // There is one log line for all of them, because refusals are logged at longer intervals than this test.
    const logged = service.deployment.process('gateway').output().split(LOG_MESSAGE);
    if (!isSlow) expect(logged).toHaveLength(2);

    service.deployment.process('core').child.kill('SIGCONT');
    await service.deployment.serves();
    expect(await aCaller(service)()).toBe('201');
    for (const caller of callers.slice(0, 100)) expect(await caller()).toBe('401');
  });

  // @proves crashes-8
  test.runIf(MEASURED_MS > 0)('a load of three times the capacity leaves four fifths of it', async () => {
    const { deployment, studio } = await aService();
    const url = new URL(deployment.gatewayUrl);
    const workload = new Workload({ ...studio, url: url.href });
    const creations = { next: () => workload.request('create'), expected: EXPECTED.create };
    await drive(url, creations, { connections: 64, durationMs: 3000 });

    const capacity = async () => computeRate(await drive(url, creations, { connections: 64, durationMs: MEASURED_MS }));
    // The machine's remaining capacity for the service may change meanwhile.
    let share = 0;
    for (let tries = 0; share <= 0.8 && tries < MAX_TRIES; tries += 1) {
      const before = await capacity();
      const ratePerSecond = Math.round(before * 3);
      const served = computeRate(
        await drive(url, creations, { connections: 4000, durationMs: MEASURED_MS, ratePerSecond }),
      );
      const peak = Math.min(before, await capacity());
      console.info(
        `Overload: ${Math.round(served)}/s are served of ${ratePerSecond}/s, at most ${Math.round(peak)}/s.`,
      );
      share = served / peak;
    }
    expect(share).toBeGreaterThan(0.8);
  });
});

/** Sends all callers' requests to a separate service at once while its core is suspended. */
async function askWhileSuspended() {
  const service = await aService({ LOG_LEVEL: 'warn' });
  // The unknown keys come from many addresses, each of which may send a number of them.
  const callers = times(CALLERS, (index) => aCaller(service, newKeySecret(), `127.0.0.${2 + (index % ADDRESSES)}`));
  for (let first = 0; first < CALLERS; first += FEW) {
    for (const outcome of await askAll(callers.slice(first, first + FEW))) expect(outcome).toBe('401');
  }
  const before = memory(service);

  service.deployment.process('core').child.kill('SIGSTOP');
  const began = performance.now();
  let refusedMs = 0;
  const asked = askAll(
    callers.map((caller) => async () => {
      const outcome = await caller();
      if (outcome === REFUSED) refusedMs = performance.now() - began;
      return outcome;
    }),
  );
  const gateway = service.deployment.process('gateway');
  await expect.poll(() => gateway.output().includes(LOG_MESSAGE), { timeout: 30_000 }).toBe(true);
  // The gateway refuses these after checking the path and before reading the key.
  const paths = ['/v1/integrations/leads', '/v1/nothing'];
  const withoutKey = await Promise.all(
    paths.map(async (path) => (await fetch(service.deployment.gatewayUrl + path)).status),
  );
  refusedMs = Math.max(refusedMs, performance.now() - began);
  const outcomes = Map.groupBy(await asked, (outcome) => outcome);
  const grownMb = memory(service) - before;
  // On a busy machine the first may time out before the last have arrived, which then wait instead.
  return { service, callers, isSlow: refusedMs > 0.8 * CORE_CALL_MS, withoutKey, outcomes, grownMb };
}

// @proves crashes-8 bounds-1
test('a thousand slow or silent connections are closed in time and delay no other client', async () => {
  const service = await aService();
  const { gatewayUrl } = service.deployment;
  const slow = times(SLOW, (index) => aSlowConnection(gatewayUrl, service.studio, index % WAYS_TO_BE_SLOW));
  let isOver = false;
  let served = 0;
  const others = times(8, async () => {
    const caller = aCaller(service);
    while (!isOver) {
      expect(await caller()).toBe('201');
      served += 1;
    }
  });

  try {
    await Promise.race([Promise.all(slow.map(({ closed }) => closed)), sleep(CLOSED_WITHIN_MS)]);
    expect(slow.filter(({ socket }) => !socket.closed)).toHaveLength(0);
  } finally {
    isOver = true;
    for (const { socket } of slow) socket.destroy();
    await Promise.all(others);
  }
  expect(served).toBeGreaterThan(0);
  expect(await countLeads(service)).toBe(served);
});

/** The number of kinds of slow connections. */
const WAYS_TO_BE_SLOW = 5;

/** Opens a connection on which no request is ever completed. */
function aSlowConnection(gatewayUrl: string, { secret }: StudioWithKey, way: number) {
  const { hostname, port } = new URL(gatewayUrl);
  const head = lines(
    `POST ${LEADS} HTTP/1.1`,
    'Host: leads.example.test',
    `Authorization: Bearer ${secret}`,
    `Idempotency-Key: ${randomUUID()}`,
    'Content-Type: application/json',
    'Content-Length: 100',
  );
  const [first, more] = (
    [
      ['', ''],
      [head.slice(0, 60), ''],
      [`${head}\r\n{"displayName":`, ''],
      // This client sends one byte at a time, endlessly.
      [head.slice(0, 20), 'a'],
      [`${head}\r\n`, ' '],
    ] as const
  )[way] as readonly [string, string];
  const socket: Socket = connect(Number(port), hostname, () => socket.write(first));
  const trickle = setInterval(() => more && socket.write(more), 1000);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      clearInterval(trickle);
      resolve();
    });
  });
  socket.on('error', () => {}).resume();
  return { socket, closed };
}

/** A core and a gateway, with a studio. */
interface TestedService {
  readonly deployment: Deployment;
  readonly core: CoreClients;
  readonly studio: StudioWithKey;
}

async function aService(settings = {}): Promise<TestedService> {
  const deployment = await deployApart({ DATABASE_URL: newSqliteUrl(), ...settings });
  const core = connectClients(deployment);
  return { deployment, core, studio: await arrangeStudio(core) };
}

const askAll = (callers: readonly (() => Promise<string>)[]) => Promise.all(callers.map((caller) => caller()));

/** Returns the resident memory of both processes; megabytes. */
const memory = ({ deployment }: TestedService): number =>
  memoryMb(deployment.process('core')) + memoryMb(deployment.process('gateway'));

const computeRate = ({ answered, seconds }: { readonly answered: number; readonly seconds: number }) =>
  answered / seconds;

/**
 * Returns a caller with its own connection, which creates one lead per call and returns the outcome as a short text.
 */
function aCaller(
  { deployment, studio }: TestedService,
  secret = studio.secret,
  localAddress = '127.0.0.1',
): () => Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress });
  onTestFinished(() => agent.destroy());
  return async () => {
    const headers = {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    };
    return new Promise((resolve, reject) => {
      request(`${deployment.gatewayUrl}${LEADS}`, { agent, method: 'POST', headers })
        .on('response', (response) => {
          const { statusCode, headers } = response;
          const mayComeAgain = /^[1-9]\d?$/.test(headers['retry-after'] ?? '');
          text(response).then((body) => {
            const isKnown = /"detail":"[^"]*: nothing was written\./.test(body);
            resolve(`${statusCode}${mayComeAgain ? ', may come again' : ''}${isKnown ? ': nothing was written' : ''}`);
          }, reject);
        })
        .on('error', reject)
        .end(JSON.stringify(aCapture()));
    });
  };
}

const countLeads = async ({ core, studio }: TestedService): Promise<number> =>
  (await allLeads(core, studio.studioId)).length;
