import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { addressOf, type RunningProcess, start } from '../support/processes.ts';
import { describeWithRedis } from '../support/servers.ts';
import { aCapture, LEADS } from '../support/service.ts';

// Four processes and two servers share two CPU cores on a small machine.
vi.setConfig({ hookTimeout: 120_000, testTimeout: 120_000 });

/** How long the slowest of a thousand requests may take; milliseconds. The gateway's deadline for the core is half of it. */
const SLOWEST_MS = 10_000;

const HERD = 1000;

describeWithMongo('two cores and two gateways', (mongoUrl) => {
  describeWithRedis('with one Redis', (redisUrl) => {
    let gateways: readonly string[];
    let clients: CoreClients;
    const processes: RunningProcess[] = [];
    beforeAll(async () => {
      const databaseUrl = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
      const started = (file: string, env: Record<string, string>) => {
        const running = start(file, { env });
        processes.push(running);
        return addressOf(running);
      };
      const cores = await Promise.all(times(2, () => started('src/main.ts', { DATABASE_URL: databaseUrl })));
      const env = { REDIS_URL: redisUrl(), QUOTA_LIMIT: '1000000' };
      gateways = await Promise.all(cores.map((coreUrl) => started('gateway/main.ts', { CORE_URL: coreUrl, ...env })));
      for (const gateway of gateways) {
        await vi.waitUntil(async () => (await fetch(`${gateway}/readyz`)).ok, { timeout: 60_000 });
      }
      clients = connectToCore(at(cores, 0));
    });
    afterAll(async () => {
      clients?.close();
      await Promise.all(processes.map((running) => running.kill()));
    });
    const studio = async () => {
      const arranged = await arrangeStudio(clients);
      const count = async () => {
        const { json } = await get(at(gateways, 1), arranged.secret, '?limit=100');
        return (json.leads as unknown[]).length;
      };
      return { ...arranged, count };
    };

    // @proves leads-10
    test('of a thousand concurrent leads for one contact, sent to both gateways, exactly one is created', {
      tags: ['4.1.3', '4.1.at-once'],
    }, async () => {
      const { secret, count } = await studio();
      await warmUp(secret);
      const contact = { type: 'email', value: `${randomUUID()}@example.org` };

      const answers = await Promise.all(
        times(HERD, (index) => post(at(gateways, index), secret, aCapture({ contact, note: `No. ${index}` }))),
      );

      const created = answers.filter(({ status }) => status === 201);
      expect(created).toHaveLength(1);
      expect(tally(answers)).toEqual({ '201': 1, '409 integration_lead_already_open': HERD - 1 });
      const [{ id } = { id: '' }] = created.map(({ json }) => json.lead as { id: string });
      const links = answers.filter(({ status }) => status === 409).map(({ link }) => link);
      expect(new Set(links.map((link) => link?.includes(id)))).toEqual(new Set([true]));
      expect(await count()).toBe(1);
      expect(slowest(answers)).toBeLessThan(SLOWEST_MS);
    });

    // @proves leads-10
    test('a thousand concurrent requests with one key and body, sent to both gateways, get one lead in the same bytes', {
      tags: ['4.1.1', '4.1.at-once'],
    }, async () => {
      const { secret, count } = await studio();
      await warmUp(secret);
      const [capture, key] = [aCapture(), randomUUID()];

      const answers = await Promise.all(times(HERD, (index) => post(at(gateways, index), secret, capture, key)));

      expect(tally(answers)).toEqual({ '201': HERD });
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(await count()).toBe(1);
      expect(slowest(answers)).toBeLessThan(SLOWEST_MS);
    });

    // @proves isolation-2
    test('a key that was revoked or replaced at one core is refused by the next request to the other gateway', {
      tags: ['3.2.replaced', '3.2.revoked', '5.7'],
    }, async () => {
      const { apiKeys } = clients;
      for (const round of times(20, (index) => index)) {
        const { secret, studioId, memberId, apiKeyId } = await studio();
        // Both gateways have the key in their caches.
        for (const gateway of gateways) expect((await get(gateway, secret)).status).toBe(200);

        const request = { studioId, memberId, apiKeyId };
        const replacement = round % 2 === 0 ? await apiKeys.replaceApiKey(request) : undefined;
        if (!replacement) await apiKeys.revokeApiKey(request);

        const answer = await post(at(gateways, 1), secret, aCapture());
        expect([answer.status, answer.json.code]).toEqual([401, 'integration_key_invalid']);
        expect((await get(at(gateways, 0), secret)).status).toBe(401);
        if (replacement) expect((await get(at(gateways, 1), replacement.secret)).status).toBe(200);
      }
    });

    /** Opens all connections, so that the test measures concurrency and not start-up. */
    async function warmUp(secret: string): Promise<void> {
      const answers = await Promise.all(times(200, (index) => get(at(gateways, index), secret, '?limit=1')));
      expect(tally(answers)).toEqual({ '200': answers.length });
    }
  });
});

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly link: string | null;
  readonly ms: number;
}

async function request(url: string, init: RequestInit): Promise<Answer> {
  const start = performance.now();
  const response = await fetch(url, init);
  const text = await response.text();
  const ms = performance.now() - start;
  return { status: response.status, text, json: JSON.parse(text), link: response.headers.get('link'), ms };
}

const post = (gateway: string, secret: string, body: unknown, key: string = randomUUID()) =>
  request(gateway + LEADS, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(body),
  });

const get = (gateway: string, secret: string, path = '') =>
  request(gateway + LEADS + path, { headers: { authorization: `Bearer ${secret}` } });

/** The number of responses by status and code. */
function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, json } of answers) {
    const name = [status, json.code].filter(Boolean).join(' ');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const slowest = (answers: readonly Answer[]) => Math.max(...answers.map(({ ms }) => ms));

/** An element of a short list, in turn. */
function at<T>(few: readonly T[], index: number): T {
  return few[index % few.length] as T;
}
