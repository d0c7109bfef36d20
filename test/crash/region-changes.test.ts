import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage, LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients } from '../support/core-clients.ts';
import { describeWithMongoServer } from '../support/mongodb.ts';
import { sizeOf } from '../support/size-of.ts';
import { type Chance, chanceOf, seedFrom } from './chance.ts';
import { aMongoServer, clientsOf, type Deployment, deployApart, newSqliteUrl } from './deployment.ts';
import { ask } from './load.ts';

/** The number of changes of the region. */
const CHANGES = sizeOf('REGION_CHANGES', { usual: 12, soak: 100 });

/** The seed of the order of operations. */
const SEED = seedFrom('CRASH_SEED');

vi.setConfig({ testTimeout: 60_000 + CHANGES * 10_000 });

const REGIONS = ['DE', 'FR', 'GB', undefined] as const;
const CALLERS = 8;

/** Texts that mean a different number in each region, each in two spellings. */
const TEXTS = times(6, (index) => `030 765432${index}`).flatMap((text) => [text, text.replace(' ', '/')]);

test('the same text never has two open leads, while the region changes and the core is killed, on SQLite', async () => {
  await expectOneOpenLeadEach(await deployApart({ DATABASE_URL: newSqliteUrl() }));
});

describeWithMongoServer('on MongoDB', () => {
  test('the same text never has two open leads, while the region changes and the core is killed', async () => {
    const { databaseUrl } = await aMongoServer();
    await expectOneOpenLeadEach(await deployApart({ DATABASE_URL: databaseUrl }));
  });
});

/**
 * Callers create leads for a few texts repeatedly; the CRM changes the region and closes leads; the core crashes now
 * and then.
 */
async function expectOneOpenLeadEach(deployment: Deployment): Promise<void> {
  const { gatewayUrl } = deployment;
  const core = clientsOf(deployment);
  const chance = chanceOf(SEED);
  const { studioId, secret } = await arrangeStudio(core, { regionCode: 'DE' });
  let isOver = false;
  let created = 0;
  const callers = times(CALLERS, () => call(chance.branch()));

  for (let change = 0; change < CHANGES; change += 1) {
    await sleep(chance.between(20, 400));
    const region = REGIONS[change % REGIONS.length];
    if (chance.number() < 0.35) {
      await Promise.all([putRegion(core, studioId, region), deployment.kill('core')]);
      await deployment.restart('core');
      const isThere = () =>
        core.directory.getStudio({ studioId }).then(
          () => true,
          () => false,
        );
      await vi.waitUntil(isThere, { timeout: 30_000, interval: 50 });
    } else await putRegion(core, studioId, region);
    await expectNoTwins(`CRASH_SEED=${SEED}, change ${change + 1}`);
  }
  isOver = true;
  await Promise.all(callers);
  await expectNoTwins(`CRASH_SEED=${SEED}, at the end`);
  expect(created).toBeGreaterThan(TEXTS.length);

  async function call(own: Chance): Promise<void> {
    const mine: string[] = [];
    while (!isOver) {
      const body = JSON.stringify({ displayName: 'Ada', contact: { type: 'phone', value: own.oneOf(TEXTS) } });
      const answer = await ask(gatewayUrl, secret, { key: own.uuid(), body });
      if (answer?.status === 201) {
        created += 1;
        mine.push(JSON.parse(answer.text).lead.id);
      }
      // Every lead is closed at some time. Otherwise each text would soon have its open lead, and no creation would
      // succeed.
      const leadId = own.number() < 0.5 ? mine.shift() : undefined;
      if (leadId !== undefined && !(await close(leadId))) mine.push(leadId);
      await sleep(answer === undefined || answer.status >= 500 ? 40 : own.between(0, 5));
    }
  }

  /** Closes a lead, and sometimes reopens it. @returns whether it is closed */
  async function close(leadId: string): Promise<boolean> {
    const move = (stage: LeadStage) =>
      core.leads.changeLeadStage({ studioId, leadId, stage }, { timeoutMs: 5000 }).then(
        () => true,
        () => false,
      );
    return (await move(LeadStage.WON)) && (chance.number() < 0.7 || !(await move(LeadStage.CONTACTED)));
  }

  /** Checks the newest leads, which are read in one snapshot; once all work has ended, checks all leads. */
  async function expectNoTwins(when: string): Promise<void> {
    const open: string[] = [];
    let pageToken = '';
    do {
      const page = await core.leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.FULL });
      for (const { stage, contact } of page.leads) {
        if (stage !== LeadStage.WON && stage !== LeadStage.LOST) open.push(contact?.value.value ?? '');
      }
      pageToken = isOver ? page.nextPageToken : '';
    } while (pageToken !== '');
    expect(open, when).toEqual([...new Set(open)]);
  }
}

async function putRegion(core: CoreClients, id: string, regionCode: string | undefined): Promise<void> {
  const studio = { id, status: StudioStatus.UNSPECIFIED, ...(regionCode !== undefined && { regionCode }) };
  await core.directory
    .putStudio({ studio, updateMask: { paths: ['region_code'] } }, { timeoutMs: 5000 })
    .catch(() => {});
}
