import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { getCountries, getExampleNumber } from 'libphonenumber-js';
import examples from 'libphonenumber-js/examples.mobile.json' with { type: 'json' };
import { BSON, MongoClient } from 'mongodb';
import { expect, onTestFinished, test, vi } from 'vitest';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { addressOf, ROOT, run, temporaryFolder } from '../support/processes.ts';
import { describeWithLastRelease } from '../support/releases.ts';
import { dropDatabase } from './mongo-documents.ts';

vi.setConfig({ testTimeout: 300_000 });

const CORE_TOKEN = 'the token of cores of two releases';

/** The regions of the studios that are created and used at the same time. */
const REGIONS_AT_ONCE = 10;

/** The number of digits that every contact may have. */
const MIN_DIGITS = 7;

/** The number that a lead of each region has, as it is typed there and abroad. */
const NUMBERS = getCountries().flatMap((region) => {
  const number = getExampleNumber(region, examples);
  const [national, international] = [number?.formatNational() ?? '', number?.formatInternational() ?? ''];
  // Shorter ones are no valid contacts.
  return national.replace(/\D/g, '').length >= MIN_DIGITS ? [{ region, national, international }] : [];
});

/** MongoDB takes ten times as long as SQLite, for the same claims: one region of eight, but all in a soak. */
const SOME = NUMBERS.filter((_, index) => process.env.SOAK || index % 8 === 0);

describeWithLastRelease('cores of the last release and of this one', (folder) => {
  // @proves leads-6
  test('on one SQLite file: no contact gets two open leads, and none of them rewrites a lead of the other', async () => {
    const path = join(temporaryFolder(), 'leads.db');
    await expectOneLeadEach(folder, `sqlite:${path}`, NUMBERS, async () => {
      using database = new DatabaseSync(path, { readOnly: true });
      return database.prepare('SELECT hex(id) AS id, hex(contact_keys) AS keys, stage FROM leads ORDER BY id').all();
    });
  });

  // @proves leads-6
  describeWithMongo('on one MongoDB', (mongoUrl) => {
    test('no contact gets two open leads, and none of them rewrites a lead of the other', async () => {
      const databaseUrl = new URL(`/test-${randomUUID()}`, mongoUrl()).href;
      const client = new MongoClient(databaseUrl);
      onTestFinished(async () => {
        await client.close();
        await dropDatabase(databaseUrl);
      });
      const fields = { openContactKey: 1, contactRule: 1, stage: 1 };
      await expectOneLeadEach(
        folder,
        databaseUrl,
        SOME,
        async () =>
          BSON.EJSON.serialize(
            await client.db().collection('leads').find().project(fields).sort({ _id: 1 }).toArray(),
          ) as unknown[],
      );
    });
  });
});

/**
 * Leads of one studio for each region are created at cores of both releases, closed and reopened. Then each studio gets
 * another region.
 *
 * @param storedLeads returns what is stored of all leads and their keys
 */
async function expectOneLeadEach(
  folder: string,
  databaseUrl: string,
  numbers: typeof NUMBERS,
  storedLeads: () => Promise<unknown[]>,
): Promise<void> {
  const former = await aCore(folder, databaseUrl);
  const current = await aCore(ROOT, databaseUrl);
  const both = [
    { here: former, there: current },
    { here: current, there: former },
  ];

  for (let done = 0; done < numbers.length; done += REGIONS_AT_ONCE) {
    const some = numbers.slice(done, done + REGIONS_AT_ONCE);
    await Promise.all(some.map(useInRegion));
  }
  const before = await storedLeads();
  expect(before.length).toBe(4 * numbers.length);
  // Cores of that release find nothing to rewrite, although the region of each studio has changed.
  expect(await claimsOf(folder, databaseUrl)).toEqual([]);
  for (const { region, national } of numbers.slice(0, 40)) {
    for (const { here } of both) expect(await create(here, `typed-${region}-0`, national)).toBe('open');
  }
  expect(await storedLeads()).toEqual(before);

  async function useInRegion({ region, national, international }: (typeof NUMBERS)[number]): Promise<void> {
    for (const [index, { here, there }] of both.entries()) {
      const studioId = `typed-${region}-${index}`;
      await putRegion(here, studioId, region);
      const leadId = await create(here, studioId, national);
      const refused = async () => {
        for (const value of [national, international]) {
          expect([region, value, await create(there, studioId, value)]).toEqual([region, value, 'open']);
        }
      };
      await refused();
      await there.leads.changeLeadStage({ studioId, leadId, stage: LeadStage.WON });
      const found = await here.leads.findLeads({ studioId, contact: phone(international) });
      expect(found.leads.map(({ id }) => id)).toEqual([leadId]);
      await here.leads.changeLeadStage({ studioId, leadId, stage: LeadStage.CONTACTED });
      await refused();

      const concurrent = `at-once-${region}-${index}`;
      await putRegion(there, concurrent, region);
      const outcomes = await Promise.all([
        create(here, concurrent, national),
        create(there, concurrent, international),
        create(there, concurrent, national),
      ]);
      expect(outcomes.filter((outcome) => outcome === 'open')).toHaveLength(2);
      for (const each of [studioId, concurrent]) await putRegion(current, each, region === 'DE' ? 'AT' : 'DE');
    }
  }
}

const phone = (value: string) => ({ value: { case: 'phone', value } }) as const;

async function aCore(release: string, databaseUrl: string): Promise<CoreClients> {
  const core = run('src/main.ts', { release, env: { CORE_TOKEN, DATABASE_URL: databaseUrl } });
  const clients = connectToCore(await addressOf(core), CORE_TOKEN);
  onTestFinished(() => clients.close());
  return clients;
}

const putRegion = (core: CoreClients, id: string, regionCode: string) =>
  core.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE, regionCode } });

/** Creates a lead; returns its id, or `open` if the contact has an open one. */
async function create({ leads }: CoreClients, studioId: string, value: string): Promise<string> {
  const request = { studioId, idempotencyKey: randomUUID(), displayName: 'Ada', contact: phone(value) };
  try {
    return (await leads.createLead(request)).lead?.id ?? '';
  } catch (error) {
    if (!/LEAD_ALREADY_OPEN|already has an open lead/.test(String(error))) throw error;
    return 'open';
  }
}

/** Lets a command of that release do what is due, and returns what it lists. */
async function claimsOf(release: string, databaseUrl: string): Promise<unknown> {
  const command = run('operator/cli.ts', {
    release,
    args: ['--json', 'claims', '--renew'],
    env: { DATABASE_URL: databaseUrl },
  });
  const status = await command.ended();
  expect({ status, output: command.output() }).toMatchObject({ status: 0 });
  return JSON.parse(command.output());
}
