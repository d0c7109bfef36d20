import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { inCall, ownContact } from '../contacts.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { databaseFile, isOnSqlite } from './choices.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { inShort, makeSeparateStudio } from './separate-studio.ts';

/** How long a core may take, which lists studios every hour and pauses between passes; how often that is checked; seconds. */
const RETAINED_WITHIN_S = 3900;
const LOOK_S = 10;

const { NEW, CONTACTED, TRIAL_BOOKED, TRIAL_ATTENDED, WON, LOST } = LeadStage;

/** The stages of leads, how many days ago they were created and last changed, and whether they stay. */
const LEADS = [
  ...[LOST, WON].map((stage) => ({ stage, createdAgo: 32, changedAgo: 32, isKept: false })),
  { stage: LOST, createdAgo: 32, changedAgo: 1, isKept: true },
  { stage: LOST, createdAgo: 1, changedAgo: 1, isKept: true },
  ...[NEW, CONTACTED, TRIAL_BOOKED, TRIAL_ATTENDED].map((stage) => ({
    stage,
    createdAgo: 32,
    changedAgo: 32,
    isKept: true,
  })),
];

/**
 * Gives a studio a retention of 30 days, and leads of all stages, most of them older. Within an hour, or soon after its start,
 * a core must erase the closed ones that have not changed since, and no others. That takes longer than most lives.
 */
export const outliveRetention = aScenario({
  weight: 0,
  weightOfHours: 4,
  isPossible: isOnSqlite,
  choice: fc.constant({}),
  run: (sim) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const { id: studioId } = studio;
      const { leads, directory } = sim.crmAt(0);
      const daysAgo = (days: number) => timestampFromMs(Date.now() - days * DAY_MS);
      const imported = LEADS.map(({ stage, createdAgo, changedAgo }, index) => {
        const idempotencyKey = sim.uuid('key', studioId, index);
        const contact = inCall(ownContact(sim.personal, idempotencyKey));
        const [createTime, updateTime] = [createdAgo, changedAgo].map(daysAgo);
        return { idempotencyKey, displayName: `Ada ${sim.personal}`, contact, stage, createTime, updateTime };
      });
      const load = () => leads.importLeads({ studioId, leads: imported }, CRM_TIMEOUT);
      const outcome = await definiteOutcome(sim, 'old leads are imported', load);
      const results = 'answer' in outcome ? outcome.answer.results : [];
      const ids = results.map(({ outcome: { case: is, value } }) => (is === 'imported' ? value.leadId : ''));
      const put = { studio: { id: studioId, retentionDays: 30 } };
      await definiteOutcome(sim, `${studioId} gets a retention`, () => directory.putStudio(put, CRM_TIMEOUT));
      {
        using database = new DatabaseSync(databaseFile(sim));
        database
          .prepare("UPDATE studios SET retention = json_set(retention, '$.since', (retention ->> 'since') - ?)")
          .run(8 * DAY_MS);
        const retention = database.prepare(
          'INSERT OR IGNORE INTO retention_time (one, version, time) VALUES (1, 1, ?)',
        );
        retention.run(Date.now());
      }
      const answers = async () =>
        Promise.all(
          ids.map(async (leadId) => inShort(await definiteAnswer(sim, studio.secret, { name: 'get', leadId }))),
        );
      let found = await answers();
      const isAnyLeft = () => LEADS.some(({ isKept }, index) => !isKept && found[index] === '200');
      for (let seconds = 0; seconds < RETAINED_WITHIN_S && isAnyLeft(); seconds += LOOK_S) {
        await sleep(LOOK_S * 1000);
        found = await answers();
      }
      const expected = LEADS.map(({ isKept }) => (isKept ? '200' : '404 integration_lead_not_found'));
      if (`${found}` !== `${expected}`) sim.history.fail(`in ${studioId}, with a retention of 30 days: ${found}`);
    }),
});
