import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Balancer, isCoreServing, startBalancer } from '../support/balancer.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { scrape } from '../support/metrics.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { freePort } from '../support/servers.ts';
import { createAt, LEADS } from '../support/service.ts';

const MAX_AGE_MS = 2000;
const PROBE_MS = 50;
const GATEWAYS = 4;

// @proves crashes-26
test('a core that joins behind a TCP balancer gets its share of the load within one connection age, and no request fails', async () => {
  const env = {
    DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`,
    CORE_CONNECTION_MAX_AGE_MS: `${MAX_AGE_MS}`,
  };
  const [first, second] = [await anAddress(), await anAddress()];
  const startAt = (address: typeof first) => addressOf(run('src/main.ts', { env: { ...env, ...address.env } }));
  await startAt(first);
  const balancer = await startBalancer([first.url, second.url], isCoreServing, PROBE_MS);
  onTestFinished(() => balancer.stop());
  const gateways = times(GATEWAYS, () =>
    run('gateway/main.ts', { env: { CORE_URL: balancer.url, QUOTA_LIMIT: '1000000000' } }),
  );
  const urls = await Promise.all(gateways.map(addressOf));
  const clients = connectToCore(first.url);
  onTestFinished(() => clients.close());
  const { secret } = await arrangeStudio(clients);

  let isOver = false;
  const failures: unknown[] = [];
  const callers = urls.map(async (url) => {
    while (!isOver) await createAndRead(url, secret).catch((error) => failures.push(error));
  });
  try {
    await moreConnections(balancer, GATEWAYS);
    expect(await creations(first)).toBeGreaterThan(0);

    await startAt(second);
    await expect.poll(() => balancer.isUsed(second.url), { timeout: 20_000 }).toBe(true);
    // No gateway opens two connections before each has opened one: their ages differ by a tenth.
    await moreConnections(balancer, GATEWAYS);

    const [firstBefore, secondBefore] = [await creations(first), await creations(second)];
    await moreConnections(balancer, 2 * GATEWAYS);
    const [firstMade, secondMade] = [(await creations(first)) - firstBefore, (await creations(second)) - secondBefore];
    const share = secondMade / (firstMade + secondMade);
    console.info(`The core that joined has ${Math.round(100 * share)} % of the creations`);
    expect(share).toBeGreaterThan(0.25);
    expect(share).toBeLessThan(0.75);
  } finally {
    isOver = true;
    await Promise.all(callers);
  }
  expect(failures).toEqual([]);
}, 120_000);

/** The address of a core that is not started yet, and the settings for it. */
async function anAddress() {
  const [port, metricsPort] = [await freePort(), await freePort()];
  return {
    url: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    env: { CORE_PORT: `${port}`, CORE_METRICS_ADDRESS: `127.0.0.1:${metricsPort}` },
  };
}

/** How many leads a core has created. */
async function creations({ metricsUrl }: { readonly metricsUrl: string }): Promise<number> {
  const series = 'lead_intake_core_call_duration_seconds_count{operation="CreateLead",outcome="ok"}';
  return (await scrape(metricsUrl)).get(series) ?? 0;
}

/** Waits until `count` more connections were opened. */
async function moreConnections(balancer: Balancer, count: number): Promise<void> {
  const before = balancer.opened();
  await expect.poll(() => balancer.opened(), { timeout: 30_000 }).toBeGreaterThanOrEqual(before + count);
}

/** Creates a lead and reads it. @throws Error when either fails */
async function createAndRead(gatewayUrl: string, secret: string): Promise<void> {
  const authorization = `Bearer ${secret}`;
  const created = await createAt(gatewayUrl, secret);
  if (created.status !== 201) throw new Error(await created.text());
  const { lead } = (await created.json()) as { lead: { id: string } };
  const read = await fetch(`${gatewayUrl}${LEADS}/${lead.id}`, { headers: { authorization } });
  const text = await read.text();
  if (read.status !== 200) throw new Error(text);
}
