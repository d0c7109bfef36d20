import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { CLI, executed } from '../support/command-line.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { createAt, LEADS } from '../support/service.ts';
import { type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';

/** Creates a token and its entry for the callers file. The command prints them in two lines. */
async function aToken() {
  const [token = '', entry = ''] = (await executed(CLI, ['callers', 'token'])).stdout.split('\n');
  return { token, entry: JSON.parse(entry) };
}

/** The outcomes of requests that succeed. */
const SERVED = ['created: 201', 'read: 200', 'ready: 200'];

/** Longer than a gateway presents only the old token; milliseconds. */
const LONGER_THAN_FORMER_MS = 11_000;

/** The pause of a caller between two requests, so that the processors have time for other suites. */
const PAUSE_MS = 50;

/** Starts a core and a gateway that share a token, each with its own file, and counts requests that run throughout. */
async function aSharedToken() {
  const [{ token: first }, { token: second }] = await Promise.all([aToken(), aToken()]);
  const tokenFiles = { core: join(temporaryFolder(), 'token'), gateway: join(temporaryFolder(), 'token') };
  for (const file of Object.values(tokenFiles)) writeFileSync(file, first);
  const settings = {
    DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`,
    CORE_TOKEN_FILE: tokenFiles.core,
    // Connections are replaced constantly, so each call is reopened with the current token.
    CORE_CONNECTION_MAX_AGE_MS: '1000',
  };
  const processes = { core: run('src/main.ts', { env: settings }), gateway: undefined as unknown as RunningProcess };
  const CORE_URL = await readAddress(processes.core);
  const env = { CORE_URL, CORE_TOKEN_FILE: tokenFiles.gateway, QUOTA_LIMIT: '1000000', GATEWAY_REQUEST_LOG: 'yes' };
  processes.gateway = run('gateway/main.ts', { env });
  const url = await readAddress(processes.gateway);
  const clients = connectToCore(CORE_URL, first);
  const { secret } = await arrangeStudio(clients);
  await clients.close();
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);

  const headers = { authorization: `Bearer ${secret}` };
  const requests = [
    async () => `ready: ${(await fetch(`${url}/readyz`)).status}`,
    async () => `read: ${(await fetch(`${url}${LEADS}`, { headers })).status}`,
    async () => `created: ${(await createAt(url, secret)).status}`,
  ];
  const outcomes = new Map<string, number>();
  let isOver = false;
  const load = requests.map(async (send) => {
    while (!isOver) {
      const outcome = await send();
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      await setTimeout(PAUSE_MS);
    }
  });
  return {
    first,
    second,
    processes,
    /** Whether the core accepts a token. */
    async isServed(token: string) {
      const clients = connectToCore(CORE_URL, token);
      const answer = await clients.directory.listStudios({}).then(
        () => true,
        () => false,
      );
      await clients.close();
      return answer;
    },
    async change(each: keyof typeof processes) {
      writeFileSync(tokenFiles[each], second);
      await processes[each].printed(/tokens for the core reloaded/);
    },
    /** Waits until more requests of each kind have succeeded. */
    async untilMoreServed() {
      const served = () => SERVED.map((outcome) => outcomes.get(outcome) ?? 0);
      const before = served();
      await expect
        .poll(() => served().every((count, at) => count > (before[at] ?? 0) + 20), { timeout: 60_000 })
        .toBe(true);
    },
    /** Stops the requests and returns their outcomes, except late key checks, which a busy machine causes. */
    async end() {
      isOver = true;
      await Promise.all(load);
      const reasons = [...processes.gateway.output().matchAll(/"reason":"([^"]*)/g)].map(([, reason = '']) => reason);
      const isLate = reasons.length > 0 && reasons.every((reason) => reason.startsWith('[deadline_exceeded]'));
      if (isLate) outcomes.delete('ready: 503');
      return [...outcomes.keys()].toSorted();
    },
  };
}

// @proves secrets-3
test.each([
  ['gateway', 'core', LONGER_THAN_FORMER_MS],
  ['core', 'gateway', 2500],
] as const)('no request fails while the shared token is changed, first at the %s', async (one, other, meanwhileMs) => {
  const shared = await aSharedToken();
  const { first, second, isServed, change } = shared;
  expect([await isServed(first), await isServed(second)]).toEqual([true, false]);

  await change(one);
  await setTimeout(meanwhileMs);
  await change(other);
  // The gateway checks its core every second, so this covers two checks.
  await setTimeout(2500);
  await shared.untilMoreServed();
  expect(await shared.end()).toEqual(SERVED);
  expect(shared.processes.gateway.output()).not.toContain('requests are not recorded');
  // The core accepts both tokens for a while, because other processes may get the new one later.
  expect([await isServed(first), await isServed(second)]).toEqual([true, true]);
});
