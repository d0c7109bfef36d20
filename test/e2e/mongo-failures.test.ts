import { randomUUID } from 'node:crypto';
import { Code, type ConnectError } from '@connectrpc/connect';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { describeWithMongoServer, type MongoWireServer, startWireServer } from '../support/mongodb.ts';
import { aCapture, aSeparateService, aService, expectProblem, leadOf, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../tools/tcp-proxy.ts';

/**
 * The core's deadline for the database is 4 s, the gateway's for the core 5 s; the rest allows for a slow machine. The driver by itself
 * would wait for 30 s.
 */
const ANSWERED_WITHIN_MS = 20_000;

/** How long recovery may take on a busy machine; milliseconds. */
const RECOVERS_WITHIN_MS = 100_000;

describeWithMongoServer('a service whose MongoDB fails', () => {
  let mongo: MongoWireServer;
  let proxy: TcpProxy;
  let databaseUrl: string;
  let studio: StudioWithKey;

  beforeAll(async () => {
    mongo = await startWireServer();
    const { hostname, port } = new URL(mongo.url);
    proxy = await startProxy(hostname, Number(port));
    databaseUrl = `mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}`;
  });
  afterAll(async () => {
    await proxy?.stop();
    await mongo?.stop();
  });
  const service = aService(() => ({ core: { DATABASE_URL: databaseUrl } }));

  beforeEach(async () => {
    // A database that has just started may be late on a busy machine.
    studio = await vi.waitFor(() => service.aStudioWithKey(), { timeout: RECOVERS_WITHIN_MS });
  });
  afterEach(async () => {
    // Also after a failed test, because the later ones need the database.
    proxy.heal();
    mongo.resume();
    await recovered();
  });

  test('while it responds to no command, each request is refused within the deadline, and the service is alive and not ready', async () => {
    mongo.pause();
    for (const send of [
      () => service.post(studio.secret, aCapture()),
      () => service.get(studio.secret),
      () => service.get(studio.secret, `/${randomUUID()}`),
    ]) {
      const sentAt = performance.now();
      const problem = await expectProblem(await send(), 503, 'integration_unavailable', []);
      expect(performance.now() - sentAt).toBeLessThan(ANSWERED_WITHIN_MS);
      expect(JSON.stringify(problem)).not.toMatch(INTERNAL);
    }
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await expectNotReady();
  });

  // @proves mongodb-3
  test('a core that starts while its database is unavailable refuses everything, and serves once it is available', async () => {
    proxy.refuse();
    const own = databaseUrl.replace(/[^/]+$/, `test-${randomUUID()}`);
    const starting = await aSeparateService({ core: { DATABASE_URL: own } });

    await expectNotReady(starting);
    await expectProblem(await starting.post(studio.secret, aCapture()), 503, 'integration_unavailable', []);
    await expect(starting.aStudioWithKey()).rejects.toMatchObject({ code: Code.Unavailable });

    proxy.heal();
    await recovered(starting);
    const { secret, studioId } = await starting.aStudioWithKey();
    await leadOf(await starting.post(secret, aCapture()), 201);
    expect(await starting.countLeads(studioId)).toBe(1);
  });

  /** Text that no response may contain. */
  const INTERNAL =
    /mongo|ferret|postgres|index|openContact|idempotencyKey|database|127\.0\.0\.1|ECONN|socket|pool|timed out/i;

  async function expectNotReady(of = service): Promise<void> {
    await expect.poll(async () => (await fetch(`${of.url}/readyz`)).status, { timeout: RECOVERS_WITHIN_MS }).toBe(503);
    const response = await fetch(`${of.url}/readyz`);
    const { detail, ...problem } = await expectProblem(response, 503, 'integration_unavailable', []);
    expect(detail).toBe('Not ready: the core does not serve.');
    expect(JSON.stringify(problem)).not.toMatch(INTERNAL);
  }

  /** Waits until the service has recovered completely. */
  async function recovered(of = service): Promise<void> {
    const isUnavailable = () =>
      of.countLeads(studio.studioId).then(
        () => false,
        ({ code }: ConnectError) => code === Code.Unavailable,
      );
    await expect.poll(isUnavailable, { timeout: RECOVERS_WITHIN_MS, interval: 50 }).toBe(false);
    await expect
      .poll(async () => (await fetch(`${of.url}/readyz`)).status, { timeout: RECOVERS_WITHIN_MS, interval: 50 })
      .toBe(200);
  }
});
