import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { type Lead, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { allLeads, arrangeStudio, type CoreClients } from '../support/core-clients.ts';
import { type Copy, consumeFeed } from '../support/feed-consumer.ts';
import { describeWithMongoServer } from '../support/mongodb.ts';
import { sizeOf } from '../support/size-of.ts';
import { type Chance, chanceOf, seedFrom } from './chance.ts';
import { aMongoServer, clientsOf, type Deployment, deployApart, newSqliteUrl } from './deployment.ts';

/** The number of times a process is killed or suspended, on each database. */
const CRASHES = sizeOf('FEED_CRASHES', { usual: 3, soak: 40 });

/** The seed of all operations, and of the time and target of each crash. */
const SEED = seedFrom('FEED_SEED');

vi.setConfig({ testTimeout: 60_000 + CRASHES * 30_000 });

/** The time between two crashes, in which all processes work; milliseconds. */
const [SOONEST_MS, LATEST_MS] = [200, 1500];

/** How long a core is suspended; milliseconds. */
const STILL_MS = 2000;

/** The number of writers and of consumers. */
const WRITERS = 4;
const CONSUMERS = 2;

const STAGES = [LeadStage.CONTACTED, LeadStage.WON, LeadStage.NEW, LeadStage.LOST] as const;

// @proves feed-3
test('the copy of the consumers finally equals the store, despite crashes of core and consumers, on SQLite', async () => {
  await expectEqualCopy(await deployApart({ DATABASE_URL: newSqliteUrl() }), ['core']);
});

describeWithMongoServer('on MongoDB', () => {
  // @proves feed-3
  test('the copy of the consumers finally equals the store, despite crashes of core, consumers and database', async () => {
    const { server: database, databaseUrl } = await aMongoServer();
    await expectEqualCopy(await deployApart({ DATABASE_URL: databaseUrl }, { database }), [
      'core',
      'database',
      'database and core',
    ]);
  });
});

async function expectEqualCopy(deployment: Deployment, parts: readonly string[]): Promise<void> {
  const core = clientsOf(deployment);
  const chance = chanceOf(SEED);
  const { studioId } = await arrangeStudio(core);
  const copy: Copy = new Map();
  const writing = new AbortController();
  const consuming = new AbortController();
  const writers = times(WRITERS, () => write(core, studioId, chance.branch(), writing.signal));
  const consumers = times(CONSUMERS, (index) =>
    consumeFeed(core, copy, chance.branch(), { signal: consuming.signal, watches: index % 2 === 0 }),
  );

  for (let crash = 0; crash < CRASHES; crash += 1) {
    await sleep(chance.between(SOONEST_MS, LATEST_MS));
    const part = parts[crash % parts.length] as string;
    if (chance.number() < 0.3) {
      const { child } = deployment.process('core');
      child.kill('SIGSTOP');
      await sleep(STILL_MS);
      child.kill('SIGCONT');
    } else {
      await deployment.kill(part);
      await deployment.restart(part);
    }
    await deployment.serves();
  }
  writing.abort();
  await Promise.all(writers);

  const there = await allLeads(core, studioId);
  expect(there.length, `FEED_SEED=${SEED}`).toBeGreaterThan(10);
  // Changes in flight arrive, and no others follow.
  await expect
    .poll(async () => (await core.leads.pullLeadChanges({}).catch(() => undefined))?.changes.length, {
      timeout: 30_000,
    })
    .toBe(0);
  consuming.abort();
  await Promise.all(consumers);
  expect([...copy.values()].map(({ lead }) => lead).sort(byId), `FEED_SEED=${SEED}`).toEqual(there.sort(byId));
}

/** Creates and moves leads, whether or not the calls succeed. */
async function write({ leads }: CoreClients, studioId: string, chance: Chance, signal: AbortSignal): Promise<void> {
  const mine: string[] = [];
  while (!signal.aborted) {
    const leadId = chance.oneOf(['', ...mine.slice(-20)]);
    const done =
      leadId === ''
        ? leads.createLead(
            {
              studioId,
              idempotencyKey: chance.uuid(),
              displayName: 'Ada',
              contact: { value: { case: 'email', value: `${chance.uuid()}@example.org` } },
            },
            { timeoutMs: 3000 },
          )
        : leads.changeLeadStage({ studioId, leadId, stage: chance.oneOf(STAGES) }, { timeoutMs: 3000 });
    const { lead } = await done.catch(() => ({ lead: undefined }));
    if (lead && leadId === '') mine.push(lead.id);
    if (!lead) await sleep(50);
  }
}

const byId = (a: Lead | undefined, b: Lead | undefined): number => ((a?.id ?? '') < (b?.id ?? '') ? -1 : 1);
