import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MongoClient, UUID } from 'mongodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { leadKey } from '../../src/store/mongo/documents.ts';
import { DAY_MS, times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';
import { ID_BYTES, STUDIO_NUMBER } from '../support/raw-sqlite.ts';
import { aCapture, aService, expectProblem, leadOf, type StudioWithKey } from '../support/service.ts';

/** Writes into the database directly, as another program would. */
interface RawWriter {
  /** Sets an unknown stage. */
  qualify(studioId: string, leadId: string): Promise<void>;
  /** Adds an unknown scope to a key, and removes its name if `isNameless`. */
  change(keyId: string, isNameless: boolean): Promise<void>;
  /** Sets an unknown status. */
  freeze(studioId: string): Promise<void>;
}

describe('on SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
  const path = join(folder, 'leads.db');
  suite(
    () => `sqlite:${path}`,
    () => writerTo(path),
  );
  afterAll(() => rmSync(folder, { recursive: true }));
});

describeWithMongo('on MongoDB', (mongoUrl) => {
  let url = '';
  suite(
    () => {
      url = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
      return url;
    },
    () => {
      const write = async (collection: string, _id: unknown, change: object) => {
        const client = new MongoClient(url);
        await client
          .db()
          .collection(collection)
          .updateOne({ _id } as object, change);
        await client.close();
      };
      return {
        qualify: (studioId, leadId) => write('leads', leadKey(studioId, leadId), { $set: { stage: 'qualified' } }),
        change: (keyId, isNameless) =>
          write('apiKeys', new UUID(keyId), {
            $push: { scopes: 'leads.export' },
            ...(isNameless && { $unset: { name: 1 } }),
          }),
        freeze: (studioId) => write('studios', studioId, { $unset: { status: 1 } }),
      };
    },
  );
});

function writerTo(path: string): RawWriter {
  const write = async (sql: string, ...values: string[]) => {
    const database = new DatabaseSync(path, { timeout: 100_000 });
    database.prepare(sql).run(...values);
    database.close();
  };
  return {
    qualify: (studioId, leadId) =>
      write(
        `UPDATE leads SET stage = 'qualified' WHERE studio_number = ${STUDIO_NUMBER} AND id = ${ID_BYTES}`,
        studioId,
        leadId,
      ),
    change: (keyId, isNameless) =>
      write(
        "UPDATE api_keys SET scopes = scopes || ' leads.export', name = ? WHERE id = ?",
        isNameless ? '' : 'x',
        keyId,
      ),
    freeze: (studioId) => write("UPDATE studios SET status = 'frozen' WHERE id = ?", studioId),
  };
}

function suite(databaseUrl: () => string, writerOf: () => RawWriter): void {
  const service = aService(() => ({ core: { DATABASE_URL: databaseUrl() } }));
  let writer: RawWriter;
  beforeAll(() => {
    writer = writerOf();
  });

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

  test('unreadable records of one studio do not affect concurrent requests of another', async () => {
    const [affected, unaffected] = [await service.aStudioWithKey(), await service.aStudioWithKey()];
    const [otherKey, namelessKey] = [await another(affected), await another(affected)];
    const [unreadable, readable] = [await created(affected), await created(affected)];
    const unaffectedLeads = [await created(unaffected), await created(unaffected)].toReversed();
    await writer.qualify(affected.studioId, unreadable.id);
    await writer.change(otherKey.id, false);
    await writer.change(namelessKey.id, true);

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

  test('a repeated creation whose lead has an unknown stage gets its response, and creates no second lead', async () => {
    const studio = await service.aStudioWithKey();
    const headers = { 'idempotency-key': randomUUID() };
    const body = aCapture();
    const lead = await leadOf(await service.post(studio.secret, body, headers), 201);
    await writer.qualify(studio.studioId, lead.id);

    const repeated = await service.post(studio.secret, body, headers);
    expect(repeated.headers.get('idempotent-replayed')).toBe('true');
    expect(await leadOf(repeated, 201)).toEqual(lead);
    const answer = await service.post(studio.secret, body);
    await expectProblem(answer, 409, 'integration_lead_already_open');
    expect(answer.headers.get('link')).toContain(lead.id);
    const move = { studioId: studio.studioId, leadId: lead.id, stage: LeadStage.WON };
    await expect(service.leads.changeLeadStage(move)).rejects.toThrow('[internal] internal error');
    expect(await service.countLeads(studio.studioId)).toBe(0);
  });

  test('an unreadable key can be listed and revoked', async () => {
    const studio = await service.aStudioWithKey();
    const { studioId, memberId, apiKeyId } = studio;
    await writer.change(apiKeyId, true);

    const { apiKeys } = await service.apiKeys.listApiKeys({ studioId, memberId });
    expect(apiKeys).toMatchObject([{ id: apiKeyId, name: '(cannot be read)', memberId, expireTime: { seconds: 0n } }]);
    const revoked = await service.apiKeys.revokeApiKey({ studioId, memberId, apiKeyId });
    expect(revoked.apiKey?.revokeTime).toBeDefined();
  });

  test('a studio with an unknown status is suspended until it is put again', async () => {
    const studio = await service.aStudioWithKey();
    await writer.freeze(studio.studioId);

    await expectProblem(await service.get(studio.secret), 402, 'subscription_suspended');
    await expectProblem(await service.post(studio.secret, aCapture()), 402, 'subscription_suspended');
    const { studio: shown } = await service.directory.getStudio({ studioId: studio.studioId });
    expect(shown?.status).toBe(StudioStatus.SUSPENDED);

    await service.directory.putStudio({ studio: { id: studio.studioId, status: StudioStatus.ACTIVE } });
    expect((await service.get(studio.secret)).status).toBe(200);
  });
}

test('the log names each unreadable record and field once an hour, and never its content', async () => {
  const path = join(temporaryFolder(), 'leads.db');
  const core = run('src/main.ts', { env: { DATABASE_URL: `sqlite:${path}` } });
  const clients = connectToCore(await addressOf(core));
  try {
    const { studioId } = await arrangeStudio(clients);
    const contact = { value: { case: 'email', value: 'grace@example.org' } } as const;
    const request = { studioId, idempotencyKey: randomUUID(), displayName: 'Grace', contact, note: 'after six' };
    const leadId = (await clients.leads.createLead(request)).lead?.id ?? '';
    await writerTo(path).qualify(studioId, leadId);

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
