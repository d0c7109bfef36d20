import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { PUBLIC_URL } from '../support/documented.ts';
import { growth, scrape } from '../support/metrics.ts';
import { rawRequest } from '../support/raw-http.ts';
import { CORE_TOKEN, expectProblem } from '../support/service.ts';
import { type RunningProcess, readAddress, sharedFolder, start } from '../tools/processes.ts';
import { REFUSED } from './gateway-refusals.ts';

const folder = sharedFolder();
const processes: RunningProcess[] = [];
let gateway: RunningProcess;
let url: string;
let metricsUrl: string;
let secret: string;
let clients: CoreClients;

beforeAll(async () => {
  const core = start('src/main.ts', { env: { CORE_TOKEN, DATABASE_URL: `sqlite:${join(folder(), 'leads.db')}` } });
  processes.push(core);
  const CORE_URL = await readAddress(core);
  clients = connectToCore(CORE_URL, CORE_TOKEN);
  gateway = start('gateway/main.ts', {
    env: {
      CORE_TOKEN,
      CORE_URL,
      PUBLIC_URL,
      GATEWAY_METRICS_ADDRESS: '127.0.0.1:0',
      NODE_OPTIONS: `--import=${import.meta.dirname}/name-refusals.ts`,
    },
  });
  processes.push(gateway);
  url = await readAddress(gateway);
  [, metricsUrl = ''] = await gateway.printed(/(http:\/\/[0-9.:]+\/metrics)/);
  ({ secret } = await arrangeStudio(clients));
});
afterAll(async () => {
  clients?.close();
  await Promise.all(processes.map((each) => each.kill()));
});

// @proves fastify-3 bounds-30
test.each(REFUSED)(
  'every refusal is a problem, logged and counted once: $what ($by)',
  { tags: ['7.no-http'] },
  async ({ by, status, code, request, ends = false }) => {
    const [before, length] = [await scrape(metricsUrl), gateway.output().length];
    const { requestId } = await expectProblem(await rawRequest(url, request(secret), { end: ends }), status, code);
    const printed = () => gateway.output().slice(length).split('\n').filter(Boolean);
    await expect.poll(() => printed().some((line) => line.includes('"outcome"'))).toBe(true);

    const isCause = (line: string) => line.startsWith('by ');
    expect(new Set(printed().filter(isCause))).toEqual(new Set(by.map((cause) => `by ${cause}`)));
    const logged = printed().filter((line) => !isCause(line));
    expect(logged.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({ requestId, status, outcome: code, level: 30 }),
    ]);
    const counted = Object.entries(growth(before, await scrape(metricsUrl))).flatMap(([series, times]) => {
      const [, outcome] = /^lead_intake_gateway_request_duration_seconds_count\{.*outcome="(\w+)"/.exec(series) ?? [];
      return outcome ? [{ outcome, times }] : [];
    });
    expect(counted).toEqual([{ outcome: code, times: 1 }]);
  },
);
