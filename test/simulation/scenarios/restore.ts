import { copyFileSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { ConsumerStart } from '../../../proto/gen/leadintake/v1/consumer_pb.ts';
import { type Lead, LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../../support/builders.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import { type Chance, createChance } from '../../tools/chance.ts';
import { inCall, ownContact } from '../contacts.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { databaseFile, isOnSqlite, lasting } from './choices.ts';
import { asFarAsDefinite, definiteOutcome, untilDefinite } from './definite-outcomes.ts';
import { onMachine } from './faults.ts';
import { command } from './operations.ts';
import { aScenario } from './scenario.ts';
import { makeSeparateStudio } from './separate-studio.ts';

/** How far ahead a core's clock is before the database is restored; seconds. */
const AHEAD_S = 3600;

const NAME = 'restored';

/** A consumer's copy of a studio's leads, which survives when its program dies. */
interface Copy {
  epoch: bigint;
  /** The last epoch for which lost leads were deleted. */
  compared: bigint;
  /** Each lead with the time of its first arrival. */
  readonly leads: Map<string, { readonly lead: Lead; readonly revision: bigint; readonly cameAt: number }>;
}

/** Keeps a copy up to date as the guide says, until a signal. Now and then the program dies, and begins again. */
async function keepCopy(
  { leads, consumers }: CoreClients,
  copy: Copy,
  studioId: string,
  chance: Chance,
  signal: AbortSignal,
): Promise<void> {
  const mayDie = () => {
    if (chance.number() < 0.1) throw new Error('it died');
  };
  async function deleteLost(restoredTo: number): Promise<void> {
    const asked = [...copy.leads].filter(([, { cameAt }]) => cameAt >= restoredTo).map(([id]) => id);
    for (let begin = 0; begin < asked.length; begin += 3) {
      const leadIds = asked.slice(begin, begin + 3);
      const { missingLeadIds } = await consumers.findMissingLeads({ studioId, leadIds }, CRM_TIMEOUT);
      for (const id of missingLeadIds) copy.leads.delete(id);
      mayDie();
    }
  }
  while (!signal.aborted) {
    try {
      const asked = { consumer: NAME, max: 5, wait: { seconds: 1n, nanos: 0 } };
      const { changes, databaseEpoch, restoredToTime } = await leads.pullLeadChanges(asked, {
        ...CRM_TIMEOUT,
        signal,
      });
      if (databaseEpoch < copy.epoch) continue;
      copy.epoch = databaseEpoch;
      if (copy.compared < databaseEpoch) {
        await deleteLost(restoredToTime ? timestampMs(restoredToTime) : 0);
        copy.compared = databaseEpoch;
      }
      for (const { lead, revision } of changes) {
        if (!lead) continue;
        const known = copy.leads.get(lead.id);
        if (known && known.revision >= revision) continue;
        copy.leads.set(lead.id, { lead, revision, cameAt: known?.cameAt ?? Date.now() });
      }
      mayDie();
      const acknowledgements = changes.map(({ lead, revision }) => ({ studioId, leadId: lead?.id ?? '', revision }));
      if (changes.length > 0)
        await leads.acknowledgeLeadChanges({ consumer: NAME, acknowledgements }, { ...CRM_TIMEOUT, signal });
    } catch {
      await sleep(20);
    }
  }
}

/** Returns the fields of a lead that are compared. */
const toCompared = ({ id, displayName, stage }: Lead) => ({ id, displayName, stage });

/**
 * Restores the database twice, each time from a backup after which a core whose clock was ahead wrote more. The copy of a
 * consumer, which dies and may sleep, must become equal to the database.
 */
export const setDatabaseBack = aScenario({
  weight: 0,
  weightOfHours: 4,
  isLast: true,
  isPossible: isOnSqlite,
  choice: fc.record({ sleeps: fc.boolean(), isServing: fc.boolean(), killedAfterMs: lasting(0, 2000) }),
  run: (sim, { sleeps, isServing, killedAfterMs }) =>
    asFarAsDefinite(async () => {
      const { id: studioId } = await makeSeparateStudio(sim);
      const core = sim.crmAt(0);
      const [coreClock] = sim.world.clocks;
      const [corePart] = sim.world.parts;
      const path = databaseFile(sim);
      const copy: Copy = { epoch: 0n, compared: 0n, leads: new Map() };
      const over = new AbortController();
      const consumer = { name: NAME, studioIds: [studioId] };
      const start = ConsumerStart.ALL_LEADS;
      const createConsumer = () => core.consumers.createConsumer({ consumer, start }, CRM_TIMEOUT);
      // The maximum number of consumers may exist already.
      if ('refused' in (await definiteOutcome(sim, 'a consumer is created', createConsumer))) return;
      const keep = (signal: AbortSignal, seed: number) => keepCopy(core, copy, studioId, createChance(seed), signal);

      let created = 0;
      const write = async (count: number) => {
        for (const _ of times(count, () => 0)) {
          created += 1;
          const idempotencyKey = sim.uuid('key', studioId, created);
          const contact = inCall(ownContact(sim.personal, idempotencyKey));
          const lead = { studioId, idempotencyKey, displayName: `Ada ${sim.personal}`, contact };
          const create = () => core.leads.createLead(lead, CRM_TIMEOUT);
          await definiteOutcome(sim, 'a lead is created', create);
        }
      };
      const all = async () => {
        const list = () => core.leads.listLeads({ studioId, pageSize: 100 }, CRM_TIMEOUT);
        const listed = await definiteOutcome(sim, 'leads are listed', list);
        return 'answer' in listed ? listed.answer.leads : [];
      };
      const change = async () => {
        const [first, second, third] = await all();
        const move = { studioId, leadId: first?.id ?? '', stage: LeadStage.CONTACTED };
        await definiteOutcome(sim, 'a lead is moved', () => core.leads.changeLeadStage(move, CRM_TIMEOUT));
        const corrected = { id: second?.id ?? '', displayName: `Ada King ${sim.personal}` };
        const update = () => core.leads.updateLead({ studioId, lead: corrected }, CRM_TIMEOUT);
        await definiteOutcome(sim, 'a lead is corrected', update);
        const erasure = { studioId, leadId: third?.id ?? '' };
        await definiteOutcome(sim, 'a lead is erased', () => core.leads.eraseLead(erasure, CRM_TIMEOUT));
      };
      const noteRestore = (to: Date) =>
        untilDefinite(sim, 'the restore is noted', async () => {
          const { status } = await command(sim, ['restored', '--to', to.toISOString()], killedAfterMs);
          // It is killed only once.
          killedAfterMs = 0;
          return status === 0 ? true : undefined;
        });

      await write(4);
      for (const round of [1, 2]) {
        const stopped = new AbortController();
        const program = keep(stopped.signal, round);
        const begunAt = new Date();
        const backup = `${path}.backup-${round}`;
        {
          using database = new DatabaseSync(path);
          database.exec(`VACUUM INTO '${backup}'`);
        }
        coreClock?.set(AHEAD_S);
        await Promise.all([write(3), change()]);
        // Waits until the copy has some of the leads that will be lost.
        await sleep(2000);
        if (sleeps) stopped.abort();
        coreClock?.set(0);
        await onMachine(sim, 'the database is restored', [], async () => {
          await corePart?.kill();
          for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
          copyFileSync(backup, path);
          if (!isServing) await noteRestore(begunAt);
          await corePart?.start();
        });
        if (isServing) await noteRestore(begunAt);
        await write(2);
        stopped.abort();
        await program;
      }
      const program = keep(over.signal, 3);
      const copied = () => [...copy.leads.values()].map(({ lead }) => lead).filter(({ eraseTime }) => !eraseTime);
      const sorted = (leads: readonly Lead[]) => leads.map(toCompared).sort((a, b) => (a.id < b.id ? -1 : 1));
      for (let seconds = 0; seconds < 30; seconds += 1) {
        await sleep(1000);
        if (isDeepStrictEqual(sorted(copied()), sorted(await all()))) break;
      }
      over.abort();
      await program;
      const [mine, stored] = [sorted(copied()), sorted(await all())];
      if (!isDeepStrictEqual(mine, stored))
        sim.history.fail(`the copy of a restored database is ${JSON.stringify(mine)}, not ${JSON.stringify(stored)}`);
    }),
});
