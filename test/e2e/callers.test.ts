import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type CallerEntries, type CallerToken, parseCallers, tokenHash } from '../../src/callers-file.ts';
import { times } from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { grpcCaller, refusalOf } from '../support/grpc.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';

/** Makes a token, and its entry for the file: a person gets two lines, and pastes the second one. */
async function aToken() {
  const [token = '', entry = ''] = (await executed(CLI, ['callers', 'token'])).stdout.split('\n');
  return { token, entry: JSON.parse(entry) };
}

test('a token is made with its entry for the file, and each is another one', async () => {
  const [{ token, entry }, other] = await Promise.all([aToken(), aToken()]);
  expect(token).toMatch(/^lic_[\w-]{48}$/);
  expect(other.token).not.toBe(token);
  expect(entry).toEqual({ sha256: tokenHash(token), created: new Date().toISOString().slice(0, 10) });
  const callers = { website: { may: ['gateway'], tokens: [entry, other.entry] } };
  expect(parseCallers(JSON.stringify({ callers }))).toEqual(callers);
});

// @proves secrets-3
test('a token is changed under load without a failed request, and the retired token is refused', async () => {
  const path = join(temporaryFolder(), 'callers.json');
  const [{ token: first, entry: firstEntry }, { token: second, entry: secondEntry }, { token: crm, entry: crmEntry }] =
    await Promise.all([aToken(), aToken(), aToken()]);
  const write = (tokens: readonly CallerToken[]) => {
    const callers: CallerEntries = { website: { may: ['gateway'], tokens }, crm: { may: ['crm'], tokens: [crmEntry] } };
    writeFileSync(`${path}.next`, JSON.stringify({ callers }));
    renameSync(`${path}.next`, path);
  };
  write([firstEntry]);
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  const core = run('src/main.ts', { env: { DATABASE_URL, CORE_CALLERS_FILE: path } });
  const CORE_URL = await addressOf(core);
  const tokenFile = join(temporaryFolder(), 'token');
  writeFileSync(tokenFile, first);
  const gateway = run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN_FILE: tokenFile, QUOTA_LIMIT: '1000000' } });
  const url = await addressOf(gateway);
  const caller = grpcCaller(new URL(CORE_URL).host);
  onTestFinished(() => caller.close());
  const clients = connectToCore(CORE_URL, crm);
  onTestFinished(() => clients.close());
  const { secret } = await arrangeStudio(clients);

  const statuses = new Map<number, number>();
  let isOver = false;
  const load = times(4, async () => {
    while (!isOver) {
      const { status } = await fetch(`${url}/v1/integrations/leads`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  const served = () => statuses.get(200) ?? 0;
  const moreServed = async () => {
    const before = served();
    await expect.poll(served).toBeGreaterThan(before + 50);
  };
  await moreServed();
  write([firstEntry, secondEntry]);
  await core.printed(/callers reloaded/);
  writeFileSync(tokenFile, second);
  await gateway.printed(/tokens for the core reloaded/);
  write([secondEntry]);
  const byFirst = () =>
    caller.call(
      'ApiKeyService/AuthenticateApiKey',
      { secretSha256: Buffer.alloc(32) },
      { authorization: `Bearer ${first}` },
    );
  await expect.poll(async () => (await refusalOf(byFirst())).reason).toBe('CALLER_UNAUTHENTICATED');
  await moreServed();
  isOver = true;
  await Promise.all(load);
  expect([...statuses.keys()]).toEqual([200]);
});

// @proves secrets-3
test.each([
  ['gateway', 'core'],
  ['core', 'gateway'],
] as const)('the token that core and gateway share is changed, at the %s first, and both go on', async (...order) => {
  const [{ token: first }, { token: second }] = await Promise.all([aToken(), aToken()]);
  const tokenFileOf = { core: join(temporaryFolder(), 'token'), gateway: join(temporaryFolder(), 'token') };
  for (const file of Object.values(tokenFileOf)) writeFileSync(file, first);
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  const core = run('src/main.ts', { env: { DATABASE_URL, CORE_TOKEN_FILE: tokenFileOf.core } });
  const CORE_URL = await addressOf(core);
  const gateway = run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN_FILE: tokenFileOf.gateway } });
  const url = await addressOf(gateway);
  const processes = { core, gateway };
  const isServed = async (token: string) => {
    const clients = connectToCore(CORE_URL, token);
    const answer = await clients.directory.listStudios({}).then(
      () => true,
      () => false,
    );
    await clients.close();
    return answer;
  };
  await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
  expect([await isServed(first), await isServed(second)]).toEqual([true, false]);

  const readiness = new Set<number>();
  let isOver = false;
  const probes = (async () => {
    while (!isOver) readiness.add((await fetch(`${url}/readyz`)).status);
  })();
  for (const each of order) {
    writeFileSync(tokenFileOf[each], second);
    await processes[each].printed(/tokens for the core reloaded/);
    // More than one of the checks that the gateway makes each second.
    await setTimeout(2500);
  }
  isOver = true;
  await probes;
  expect([...readiness]).toEqual([200]);
  // Others may learn of it later.
  expect([await isServed(first), await isServed(second)]).toEqual([true, true]);
});
