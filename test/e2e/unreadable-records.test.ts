import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MongoClient, UUID } from 'mongodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiKeyScope } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
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
}

// @proves limits-1
describe('on SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
  const path = join(folder, 'leads.db');
  suite(
    () => `sqlite:${path}`,
    () => writerTo(path),
  );
  afterAll(() => rmSync(folder, { recursive: true }));
});

// @proves limits-1
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
}

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
