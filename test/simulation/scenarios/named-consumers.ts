import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { ConsumerStart } from '../../../proto/gen/leadintake/v1/consumer_pb.ts';
import type { LeadChange } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { type Copy, consumeFeed } from '../../support/feed-consumer.ts';
import { createChance } from '../../tools/chance.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { lasting, studio, studioAt } from './choices.ts';
import { asFarAsDefinite, definiteOutcome } from './definite-outcomes.ts';
import { command } from './operations.ts';
import { aScenario } from './scenario.ts';

/** A named consumer that stays until the end of the life, with its copy of the leads. */
export interface KeptConsumer {
  readonly name: string;
  /** Whether it should have every lead. */
  readonly hasAll: boolean;
  readonly copy: Copy;
  /** The studios of the consumer; empty for all. */
  readonly studioIds: readonly string[];
  /** A time at which it certainly existed; on the clock of the test. */
  readonly createdMs: number;
  /** The changes that it has tried to acknowledge, by lead id. */
  readonly taken: Map<string, LeadChange[]>;
}

/** More consumers would only make lives longer. */
const MAX_KEPT = 3;

const kept = new WeakMap<Simulation, KeptConsumer[]>();
const counts = new WeakMap<Simulation, number>();

export const keptConsumers = (sim: Simulation): readonly KeptConsumer[] => kept.get(sim) ?? [];

/** Sets some of a consumer's waiting changes aside. The end of the life takes them back. */
async function setSomeAside(sim: Simulation, name: string, core: number): Promise<void> {
  const { leads } = sim.crmAt(core);
  const pulled = leads.pullLeadChanges({ consumer: name, max: 5 }, CRM_TIMEOUT);
  const changes = await pulled.then(
    (found) => found.changes,
    () => [],
  );
  for (const { lead } of changes) {
    const named = [name, lead?.studioId ?? '', lead?.id ?? ''];
    await command(sim, ['consumers', 'set-aside', ...named, '--reason', 'PARKED']);
  }
}

/**
 * Adds a consumer of the change feed, which dies now and then. Some consumers are removed while changes wait for them, and return
 * under the same name. Some sleep, and some stay until the end of the life.
 */
export const comeAndGoAsConsumer = aScenario({
  weight: 6,
  choice: fc.record({
    start: fc.constantFrom(ConsumerStart.NOW, ConsumerStart.ALL_LEADS),
    name: fc.constantFrom('own', 'relay'),
    studios: fc.array(studio, { maxLength: 2 }),
    end: fc.constantFrom('kept', 'kept', 'removed', 'removed by command'),
    isAsleep: fc.boolean(),
    isResent: fc.boolean(),
    setsAside: fc.boolean(),
    watches: fc.boolean(),
    core: fc.nat(1),
    forMs: lasting(200, 10_000),
  }),
  async run(sim, { start, name: given, studios, end, isAsleep, isResent, setsAside, watches, core, forMs }) {
    const count = (counts.get(sim) ?? 0) + 1;
    counts.set(sim, count);
    const isKept = end === 'kept' && keptConsumers(sim).length < MAX_KEPT;
    // Consumers that are removed share some names.
    const name = isKept ? `kept-${count}` : given === 'own' ? `own-${count}` : given;
    const { consumers } = sim.crmAt(core);
    const studioIds = studios.map((index) => studioAt(sim, index).id);
    const request = { consumer: { name, studioIds, allStudios: studios.length === 0 }, start };
    await asFarAsDefinite(async () => {
      const create = () => consumers.createConsumer(request, CRM_TIMEOUT);
      const outcome = await definiteOutcome(sim, `consumer ${name} is created`, create);
      // The maximum number of consumers exists, or one of that name.
      if ('refused' in outcome) return;
      const copy: Copy = new Map();
      const hasAll = start === ConsumerStart.ALL_LEADS;
      const taken = new Map<string, LeadChange[]>();
      const known = { name, hasAll, copy, studioIds, createdMs: now(), taken };
      if (isKept) kept.set(sim, [...keptConsumers(sim), known]);
      const over = new AbortController();
      const consumer = isAsleep
        ? undefined
        : consumeFeed(sim.crmAt(core), copy, createChance(count), {
            signal: over.signal,
            watches,
            consumer: name,
            fail: (broken) => sim.history.fail(broken),
            taken,
          });
      await sleep(forMs / 2);
      if (setsAside) await setSomeAside(sim, name, core);
      if (isResent) await command(sim, ['changes', 'resend', studioAt(sim, 0).id, '--consumer', name]);
      await sleep(forMs / 2);
      over.abort();
      await consumer;
      if (end === 'removed by command') await command(sim, ['consumers', 'remove', name]);
      if (isKept) return;
      const remove = () => consumers.removeConsumer({ consumer: name }, CRM_TIMEOUT);
      await definiteOutcome(sim, `consumer ${name} is removed`, remove);
    });
  },
});
