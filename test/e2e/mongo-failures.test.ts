import { randomUUID } from 'node:crypto';
import { Code, type ConnectError } from '@connectrpc/connect';
import { expect, onTestFinished, test } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { describeWithMongoServer, startWireServer } from '../support/mongodb.ts';
import { aCapture, aSeparateService, expectProblem, readLead } from '../support/service.ts';
import { startProxy } from '../tools/tcp-proxy.ts';

/** How long recovery may take on a busy machine; milliseconds. */
const RECOVERS_WITHIN_MS = 100_000;

/** Text that no response may contain. */
const INTERNAL =
  /mongo|ferret|postgres|index|openContact|idempotencyKey|database|127\.0\.0\.1|ECONN|socket|pool|timed out/i;

// test/contract/mongo-deadline.test.ts covers a MongoDB that stops responding later.
describeWithMongoServer('a service whose MongoDB fails', () => {
  // @proves mongodb-3
  test('a core that starts without its database refuses all requests until it is available', async () => {
    const mongo = await startWireServer();
    onTestFinished(() => mongo.stop());
    const { hostname, port } = new URL(mongo.url);
    const proxy = await startProxy(hostname, Number(port));
    onTestFinished(() => proxy.stop());
    proxy.refuse();
    const DATABASE_URL = `mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}`;
    const service = await aSeparateService({ core: { DATABASE_URL } });
    const readyz = () => fetch(`${service.url}/readyz`);

    await expect.poll(async () => (await readyz()).status, { timeout: RECOVERS_WITHIN_MS }).toBe(503);
    const { detail, ...problem } = await expectProblem(await readyz(), 503, 'integration_unavailable', []);
    expect(detail).toBe('Not ready: the core does not serve.');
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    const refused = await service.post(newKeySecret(), aCapture());
    const refusal = await expectProblem(refused, 503, 'integration_unavailable', []);
    expect(JSON.stringify([problem, refusal])).not.toMatch(INTERNAL);
    await expect(service.aStudioWithKey()).rejects.toMatchObject({ code: Code.Unavailable });

    proxy.heal();
    const isUnavailable = () =>
      service.countLeads('studio').then(
        () => false,
        ({ code }: ConnectError) => code === Code.Unavailable,
      );
    await expect.poll(isUnavailable, { timeout: RECOVERS_WITHIN_MS }).toBe(false);
    await expect.poll(async () => (await readyz()).status, { timeout: RECOVERS_WITHIN_MS }).toBe(200);
    const { secret, studioId } = await service.aStudioWithKey();
    await readLead(await service.post(secret, aCapture()), 201);
    expect(await service.countLeads(studioId)).toBe(1);
  });
});
