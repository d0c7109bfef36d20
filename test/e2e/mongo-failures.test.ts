import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Code, type ConnectError } from '@connectrpc/connect';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ChangeLeadStageResponse, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { describeWithMongoServer, isCommand, type MongoWireServer, startWireServer } from '../support/mongodb.ts';
import {
  aCapture,
  aSeparateService,
  aService,
  expectProblem,
  type LeadJson,
  leadOf,
  type StudioWithKey,
} from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

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
    studio = await service.aStudioWithKey();
  });
  afterEach(async () => {
    // Also after a failed test, because the later ones need the database.
    proxy.heal();
    mongo.resume();
    await recovered();
  });

  // @proves crashes-18
  describe('when replies to commands get lost', () => {
    test('an insert is one lead when all later replies are lost as well, until the retry', async () => {
      const [capture, key] = [aCapture(), { 'idempotency-key': randomUUID() }];
      const before = await service.countLeads(studio.studioId);
      let isWritten = false;
      proxy.loseReplies({
        of: (request) => {
          isWritten ||= isCommand('insert')(request);
          return isWritten;
        },
        count: Number.POSITIVE_INFINITY,
      });

      const sentAt = performance.now();
      await expectProblem(await service.post(studio.secret, capture, key), 503, 'integration_unavailable');
      expect(performance.now() - sentAt).toBeLessThan(ANSWERED_WITHIN_MS);

      proxy.heal();
      await recovered();
      expect(await service.countLeads(studio.studioId)).toBe(before + 1);
      const retried = await service.post(studio.secret, capture, key);
      expect(retried.headers.get('idempotent-replayed')).toBe('true');
      await leadOf(retried, 201);
      expect(await service.countLeads(studio.studioId)).toBe(before + 1);
    });

    test('a change of stage that is written, but loses the reply again and again, can be repeated: updatedAt grows once', async () => {
      const { id, ...before } = await leadOf(await service.post(studio.secret, aCapture()), 201);
      let last = before.updatedAt;
      for (const [stage, name] of [
        [LeadStage.CONTACTED, 'contacted'],
        [LeadStage.WON, 'won'],
        [LeadStage.NEW, 'new'],
      ] as const) {
        const change = () => service.leads.changeLeadStage({ studioId: studio.studioId, leadId: id, stage });
        proxy.loseReplies({ of: isCommand('update'), count: 3 });
        const answered = await change().catch((error: ConnectError) => error.code);
        expect(proxy.lost()).toBeGreaterThan(0);
        proxy.heal();
        await recovered();

        const written = await read(id);
        expect(written.stage).toBe(name);
        expect(written.updatedAt > last).toBe(true);
        // 14: unavailable.
        if (typeof answered === 'number') expect(answered).toBe(14);
        else expect(timeOf(answered)).toBe(written.updatedAt);
        expect(timeOf(await change())).toBe(written.updatedAt);
        expect(await read(id)).toEqual(written);
        last = written.updatedAt;
      }
    });
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

  async function read(id: string): Promise<LeadJson> {
    return leadOf(await service.get(studio.secret, `/${id}`));
  }
});

function timeOf({ lead }: Pick<ChangeLeadStageResponse, 'lead'>): string {
  return lead?.updateTime ? timestampDate(lead.updateTime).toISOString() : 'none';
}
