import { randomUUID } from 'node:crypto';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { Code, type ConnectError } from '@connectrpc/connect';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ChangeLeadStageResponse, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
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
import { type Loss, startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

// Many tests wait for several timeouts.
vi.setConfig({ testTimeout: 120_000 });

/** The core's deadline for the database is 4 s, the gateway's for the core 5 s; the rest allows for a slow machine. */
const ANSWERED_WITHIN_MS = 7000;

/** How long recovery may take on a busy machine; milliseconds. */
const RECOVERS_WITHIN_MS = 15_000;

/** The driver's pool for commands, and some connections that monitor the server. */
const MAX_CONNECTIONS = 110;

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
    test('an insert whose reply is lost after the write is one lead whatever the response, again and again', async () => {
      for (const count of times(6, (index) => 1 + (index % 3))) {
        await createWith({ of: isCommand('insert'), count });
        expect(proxy.lost()).toBeGreaterThan(0);
      }
    });

    test('an insert after which the connection falls silent is one lead', async () => {
      for (const count of [1, 4]) await createWith({ of: isCommand('insert'), count, by: 'silence' });
    });

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

    test.each<[string, Omit<Loss, 'of'>]>([['the reply, again and again', { count: 3 }]])(
      'a change of stage that is written, but loses %s, can be repeated: updatedAt grows once',
      async (_, loss) => {
        const { id, ...before } = await leadOf(await service.post(studio.secret, aCapture()), 201);
        let last = before.updatedAt;
        for (const [stage, name] of [
          [LeadStage.CONTACTED, 'contacted'],
          [LeadStage.WON, 'won'],
          [LeadStage.NEW, 'new'],
        ] as const) {
          const change = () => service.leads.changeLeadStage({ studioId: studio.studioId, leadId: id, stage });
          proxy.loseReplies({ of: isCommand('update'), ...loss });
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
      },
    );

    test('a correction that is written, but loses the reply, is written once, whatever the response', async () => {
      const { studioId } = studio;
      const { id } = await leadOf(await service.post(studio.secret, aCapture()), 201);
      for (const note of ['one', 'two', 'three']) {
        const before = await service.leads.getLead({ studioId, leadId: id });
        const expectedUpdateTime = before.lead?.updateTime as Timestamp;
        proxy.loseReplies({ of: isCommand('update'), count: 2 });
        const answered = await service.leads
          .updateLead({ studioId, lead: { id, note }, expectedUpdateTime })
          .catch((error: ConnectError) => error.code);
        expect(proxy.lost()).toBeGreaterThan(0);
        proxy.heal();
        await recovered();

        const written = await read(id);
        expect(written.note).toBe(note);
        // Never a mismatch of the expected time, which matched when the value was written.
        if (typeof answered === 'number') expect(answered).toBe(Code.Unavailable);
        else expect(timeOf(answered)).toBe(written.updatedAt);
      }
      const { events } = await service.audit.listAuditEvents({ studioId, leadId: id });
      expect(events).toHaveLength(3);
    });

    /** Creates a lead while replies get lost, then retries; expects true responses and a single lead. */
    async function createWith(loss: Loss, overrides: Record<string, unknown> = {}): Promise<void> {
      const [capture, key] = [aCapture(overrides), { 'idempotency-key': randomUUID() }];
      const before = await service.countLeads(studio.studioId);
      proxy.loseReplies(loss);
      const sentAt = performance.now();
      const first = await service.post(studio.secret, capture, key);
      expect(performance.now() - sentAt).toBeLessThan(ANSWERED_WITHIN_MS);
      proxy.heal();
      await recovered();

      const second = await leadOf(await service.post(studio.secret, capture, key), 201);
      if (first.status === 201) expect(await leadOf(first, 201)).toEqual(second);
      else await expectProblem(first, 503, 'integration_unavailable', []);
      expect(await service.countLeads(studio.studioId)).toBe(before + 1);
      expect(await read(second.id)).toEqual(second);
    }
  });

  describe.each<[string, () => void, () => void]>([
    ['it responds to no command', () => mongo.pause(), () => mongo.resume()],
  ])('while %s', (_, begin, end) => {
    beforeEach(begin);

    test('each request is refused within the deadline, and the service is alive and not ready', async () => {
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

    test('many concurrent requests are all refused within the deadline, repeatedly, and leave no connections behind', async () => {
      for (const _ of times(2, () => 0)) {
        const sentAt = performance.now();
        const answers = await Promise.all(times(200, () => service.post(studio.secret, aCapture())));
        expect(performance.now() - sentAt).toBeLessThan(ANSWERED_WITHIN_MS);
        for (const answer of answers) await expectProblem(answer, 503, 'integration_unavailable', []);
      }

      end();
      await recovered();

      expect(proxy.connections()).toBeLessThanOrEqual(MAX_CONNECTIONS);
      const sentAt = performance.now();
      const answers = await Promise.all(times(50, () => service.post(studio.secret, aCapture())));
      expect(performance.now() - sentAt).toBeLessThan(ANSWERED_WITHIN_MS);
      for (const answer of answers) await leadOf(answer, 201);
    });
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

  test.each([['idempotencyKey', { studioId: 1, 'idempotency.key': 1 }]] as const)(
    'while another index takes the place of %s nothing is created, no response mentions it, and the service recovers once it is gone',
    async (name, key) => {
      const lead = await leadOf(await service.post(studio.secret, aCapture()), 201);
      const client = new MongoClient(databaseUrl);
      onTestFinished(() => client.close());
      const leads = client.db().collection('leads');
      await leads.dropIndex(name);
      // The core may have recreated its own index meanwhile.
      await leads
        .createIndex(key, { name })
        .catch(() => leads.dropIndex(name).then(() => leads.createIndex(key, { name })));
      await vi.waitFor(() => expectNotReady(), { timeout: RECOVERS_WITHIN_MS });

      const refused = await service.post(studio.secret, aCapture());
      const { detail, ...problem } = await expectProblem(refused, 503, 'integration_unavailable', []);
      expect(JSON.stringify({ detail, problem })).not.toMatch(INTERNAL);
      expect(await read(lead.id)).toEqual(lead);

      await leads.dropIndex(name);
      await recovered();
      expect((await leads.indexes()).find((index) => index.name === name)).toMatchObject({ unique: true });
      await leadOf(await service.post(studio.secret, aCapture()), 201);
    },
  );

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
