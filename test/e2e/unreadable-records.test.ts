import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { afterAll, expect, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { DAY_MS, times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { ID_BYTES, STUDIO_NUMBER } from '../support/raw-sqlite.ts';
import { aCapture, aService, expectProblem, leadOf, type StudioWithKey } from '../support/service.ts';
import { addressOf, run, temporaryFolder } from '../tools/processes.ts';

/** Writes into a database directly, as another program would. */
function write(path: string, sql: string, ...values: string[]): void {
  const database = new DatabaseSync(path, { timeout: 100_000 });
  database.prepare(sql).run(...values);
  database.close();
}

const UNKNOWN_STAGE = `UPDATE leads SET stage = 'qualified' WHERE studio_number = ${STUDIO_NUMBER} AND id = ${ID_BYTES}`;
const UNKNOWN_SCOPE = "UPDATE api_keys SET scopes = scopes || ' leads.export' WHERE id = ?";
const NO_NAME = "UPDATE api_keys SET name = '' WHERE id = ?";

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
const path = join(folder, 'leads.db');
afterAll(() => rmSync(folder, { recursive: true }));
const service = aService({ core: { DATABASE_URL: `sqlite:${path}` } });

const created = async (studio: StudioWithKey) => leadOf(await service.post(studio.secret, aCapture()), 201);
const another = async ({ studioId, memberId }: StudioWithKey) => {
  const scopes = [ApiKeyScope.LEADS_READ];
  const expireTime = timestampFromMs(Date.now() + DAY_MS);
  const { apiKey, secret } = await service.apiKeys.createApiKey({
    studioId,
    memberId,
    name: 'x',
    scopes,
    expireTime,
  });
  return { id: apiKey?.id ?? '', secret };
};

// @proves limits-1
test('unreadable records of one studio do not affect concurrent requests of another', async () => {
  const [affected, unaffected] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
  const [otherKey, namelessKey] = [await another(affected), await another(affected)];
  const [unreadable, readable] = [await created(affected), await created(affected)];
  const unaffectedLeads = [await created(unaffected), await created(unaffected)].toReversed();
  write(path, UNKNOWN_STAGE, affected.studioId, unreadable.id);
  for (const key of [otherKey, namelessKey]) write(path, UNKNOWN_SCOPE, key.id);
  write(path, NO_NAME, namelessKey.id);

  const statuses = async (of: () => Promise<Response>) => {
    const answers = await Promise.all(times(40, of));
    return [...new Set(answers.map(({ status }) => status))];
  };
  const [read, listed, shut, keyed, oneOfOurs, allOfOurs, creations] = await Promise.all([
    statuses(() => service.get(affected.secret, `/${unreadable.id}`)),
    statuses(() => service.get(affected.secret)),
    statuses(() => service.get(namelessKey.secret)),
    statuses(() => service.get(otherKey.secret, `/${readable.id}`)),
    statuses(() => service.get(unaffected.secret, `/${unaffectedLeads[0]?.id}`)),
    statuses(() => service.get(unaffected.secret)),
    statuses(() => service.post(unaffected.secret, aCapture())),
  ]);

  expect({ read, listed, shut, keyed }).toEqual({ read: [500], listed: [200], shut: [401], keyed: [200] });
  expect({ oneOfOurs, allOfOurs, creations }).toEqual({ oneOfOurs: [200], allOfOurs: [200], creations: [201] });
  await expectProblem(await service.get(affected.secret, `/${unreadable.id}`), 500, 'internal_error');
  await expectProblem(await service.get(namelessKey.secret), 401, 'integration_key_invalid');
  expect(await (await service.get(affected.secret)).json()).toEqual({ leads: [readable], nextCursor: null });
});

// @proves limits-7
test('the log names each unreadable record and field once an hour, and never its content', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${path}` } });
  const clients = connectToCore(await addressOf(core));
  try {
    const { studioId } = await arrangeStudio(clients);
    const contact = { value: { case: 'email', value: 'grace@example.org' } } as const;
    const request = { studioId, idempotencyKey: randomUUID(), displayName: 'Grace', contact, note: 'after six' };
    const leadId = (await clients.leads.createLead(request)).lead?.id ?? '';
    write(path, UNKNOWN_STAGE, studioId, leadId);

    for (const _ of times(3, () => 0)) await clients.leads.listLeads({ studioId });
    await expect(clients.leads.getLead({ studioId, leadId })).rejects.toThrow('[internal] internal error');
    await core.printed(/"operation":"GetLead","outcome":"INTERNAL"/);

    const lines = core
      .output()
      .split('\n')
      .filter((line) => /unreadable record|cannot be read/.test(line));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { kind: 'lead', studioId, id: leadId, field: 'stage', msg: 'unreadable record' },
      { err: { message: expect.stringContaining(`the lead ${leadId} of studio ${studioId} cannot be read: stage`) } },
    ]);
    expect(core.output()).not.toMatch(/qualified|Grace|grace|after six/);
  } finally {
    clients.close();
  }
});
