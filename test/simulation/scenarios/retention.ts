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

/** How long the core has for it, some of its turns, which are a minute apart; and how often somebody looks; seconds. */
const RETAINED_WITHIN_S = 300;
const LOOK_S = 10;

/**
 * A studio has had a retention for long, and a lead that was closed before: a core erases it within some minutes, and no other
 * lead. It takes longer than other lives, so that no seed has it.
 */
export const outliveRetention = aScenario({
  weight: 0,
  isPossible: isOnSqlite,
  choice: fc.constant({}),
  run: (sim) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const { id: studioId } = studio;
      const ids: string[] = [];
      for (const name of ['old', 'new', 'open'])
        ids.push(leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studioId, name))));
      const { leads, directory } = sim.crmAt(0);
      for (const leadId of ids.slice(0, 2)) {
        const move = { studioId, leadId, stage: LeadStage.LOST };
        await definiteOutcome(sim, `${leadId} is lost`, () => leads.changeLeadStage(move, CRM_TIMEOUT));
      }
      const put = { studio: { id: studioId, retentionDays: 30 } };
      await definiteOutcome(sim, `${studioId} gets a retention`, () => directory.putStudio(put, CRM_TIMEOUT));
      {
        using database = new DatabaseSync(databaseFile(sim));
        database.prepare('UPDATE studio_retentions SET since = since - ?').run(8 * DAY_MS);
        const retention = database.prepare('INSERT INTO retention_time (one, version, time) VALUES (1, 1, ?)');
        retention.run(Date.now());
        const age = `UPDATE leads SET created_at = created_at - ?1, updated_at = updated_at - ?1 WHERE id = ${ID_BYTES}`;
        for (const id of [ids[0] ?? '', ids[2] ?? '']) database.prepare(age).run(32 * DAY_MS, id);
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
      const expected = ['404 integration_lead_not_found', '200', '200'];
      if (`${found}` !== `${expected}`) sim.history.fail(`in ${studioId}, which retains leads for 30 days: ${found}`);
    }),
});
