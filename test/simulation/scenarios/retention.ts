import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { ID_BYTES } from '../../support/raw-sqlite.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { databaseFile, isOnSqlite } from './choices.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** How long the core has for it, which lists studios each hour, and takes turns a minute apart; and how often somebody looks; seconds. */
const RETAINED_WITHIN_S = 3900;
const LOOK_S = 10;

/** Leads that are closed or not, how many days ago they were created and changed last, and whether they stay. */
const LEADS = [
  { name: 'old', isClosed: true, createdAgo: 32, changedAgo: 32, isKept: false },
  { name: 'changed', isClosed: true, createdAgo: 32, changedAgo: 0, isKept: true },
  { name: 'new', isClosed: true, createdAgo: 0, changedAgo: 0, isKept: true },
  { name: 'open', isClosed: false, createdAgo: 32, changedAgo: 32, isKept: true },
];

/**
 * A studio has had a retention for long, and a lead that was closed and not changed since: a core erases it within an hour, or soon
 * after its start, and no other lead. It takes longer than most lives.
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
      const ids: string[] = [];
      const { leads, directory } = sim.crmAt(0);
      for (const { name, isClosed } of LEADS) {
        const leadId = leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studioId, name)));
        ids.push(leadId);
        const move = { studioId, leadId, stage: LeadStage.LOST };
        if (isClosed) await definiteOutcome(sim, `${leadId} is lost`, () => leads.changeLeadStage(move, CRM_TIMEOUT));
      }
      const put = { studio: { id: studioId, retentionDays: 30 } };
      await definiteOutcome(sim, `${studioId} gets a retention`, () => directory.putStudio(put, CRM_TIMEOUT));
      {
        using database = new DatabaseSync(databaseFile(sim));
        database.prepare('UPDATE studio_retentions SET since = since - ?').run(8 * DAY_MS);
        const retention = database.prepare('INSERT INTO retention_time (one, version, time) VALUES (1, 1, ?)');
        retention.run(Date.now());
        const age = `UPDATE leads SET created_at = created_at - ?, updated_at = updated_at - ? WHERE id = ${ID_BYTES}`;
        for (const [index, { createdAgo, changedAgo }] of LEADS.entries())
          database.prepare(age).run(createdAgo * DAY_MS, changedAgo * DAY_MS, ids[index] ?? '');
      }
      const answers = async () =>
        Promise.all(
          ids.map(async (leadId) => inShort(await definiteAnswer(sim, studio.secret, { name: 'get', leadId }))),
        );
      let found = await answers();
      for (let seconds = 0; seconds < RETAINED_WITHIN_S && found[0] === '200'; seconds += LOOK_S) {
        await sleep(LOOK_S * 1000);
        found = await answers();
      }
      const expected = LEADS.map(({ isKept }) => (isKept ? '200' : '404 integration_lead_not_found'));
      if (`${found}` !== `${expected}`) sim.history.fail(`in ${studioId}, which retains leads for 30 days: ${found}`);
    }),
});
