import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, onTestFinished, test } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/health/v1/health_pb.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { lockHolder } from '../support/lock-holder.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { CORE_TOKEN, createAt, LEADS } from '../support/service.ts';

/** A core and a gateway in processes of their own, on one database file. */
async function aDeployment() {
  const path = join(temporaryFolder(), 'leads.db');
  const DATABASE_URL = `sqlite:${path}`;
  const CORE_URL = await addressOf(run('src/main.ts', { env: { DATABASE_URL, CORE_TOKEN } }));
  const gatewayUrl = await addressOf(run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN, QUOTA_LIMIT: '100000' } }));
  const clients = connectToCore(CORE_URL, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { secret } = await arrangeStudio(clients);
  const created = await createAt(gatewayUrl, secret);
  expect(created.status).toBe(201);
  const health = createClient(Health, createConnectTransport({ baseUrl: CORE_URL, httpVersion: '2' }));
  const { location } = Object.fromEntries(created.headers) as { location: string };
  return {
    path,
    DATABASE_URL,
    create: () => createAt(gatewayUrl, secret),
    /** Reads a lead, and asks gateway and core whether they are ready, all at once. */
    async ask() {
      const headers = { authorization: `Bearer ${secret}` };
      const [{ status }, lead, readiness] = await Promise.all([
        health.check({}, { headers: { authorization: `Bearer ${CORE_TOKEN}` } }),
        fetch(new URL(location ?? LEADS, gatewayUrl), { headers }),
        fetch(`${gatewayUrl}/readyz`),
      ]);
      return [status, lead.status, readiness.status];
    },
  };
}

const ALL_WELL = [Status.SERVING, 200, 200];

// @proves crashes-30
test('reads, health and readiness are answered while another process holds the lock, and a creation is made after it', async () => {
  const { path, create, ask } = await aDeployment();
  const other = lockHolder(path);
  await other.lock();

  let isCreated = false;
  const creation = create().finally(() => {
    isCreated = true;
  });
  for (const _ of times(20, () => 0)) expect(await ask()).toEqual(ALL_WELL);

  expect(isCreated).toBe(false);
  await other.unlock();
  expect((await creation).status).toBe(201);
});
