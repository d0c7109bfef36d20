import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { WatchLeadChangesResponse } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { consumeFeed } from '../../support/feed-consumer.ts';
import { createChance } from '../../tools/chance.ts';
import { type FinalLead, finalLead } from '../final-state.ts';
import { now } from '../history.ts';
import { type KeptConsumer, keptConsumers } from '../scenarios/named-consumers.ts';
import { testLeads } from '../scenarios/test-studios.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { kindViolations } from './kinds.ts';

/** The longest time until all changes have arrived after the last change; milliseconds. */
const ARRIVES_WITHIN_MS = 120_000;

/** In a long life, how long consumers wait for changes, and how long they sleep then; milliseconds. */
const AWAKE_MS = 20_000;
const ASLEEP_MS = 300_000;

/** How often a watch may send one state: again only when the first named consumer or test studio is created. */
const MAX_SENDS = 2;

/**
 * Passes on what a watch sends, and fails if it sends one state too often. A resend of a lead has a later `firstChangeTime`. With
 * clocks that differ, a full poll may leave a state out and a later one repeat it, so a repetition after a full poll is not counted.
 */
async function* expectFewRepeats({ history }: Simulation, watch: AsyncIterable<WatchLeadChangesResponse>) {
  const sent = new Map<string, { times: number; fullPolls: number }>();
  let fullPolls = 0;
  for await (const message of watch) {
    for (const { lead, revision, firstChangeTime } of message.changes) {
      const state = `${lead?.id} ${revision} ${firstChangeTime?.seconds}.${firstChangeTime?.nanos}`;
      const last = sent.get(state);
      const times = (last?.times ?? 0) + (last && last.fullPolls < fullPolls ? 0 : 1);
      if (times > MAX_SENDS) history.fail(`a watch sends ${state} ${times} times`);
      sent.set(state, { times, fullPolls });
    }
    if (message.heldBack) fullPolls += 1;
    yield message;
  }
}

/**
 * Runs two consumers of the change feed: one pulls and one watches, and both die now and then.
 *
 * @param isLong whether they mostly sleep, because a core queries its database twenty times a second for a waiting consumer
 */
export function followFeed(
  sim: Simulation,
  isLong: boolean,
): {
  /** Waits for the last changes, and compares the copies of all consumers with the final leads. */
  violations(finalLeads: ReadonlyMap<string, readonly FinalLead[]>): Promise<string[]>;
} {
  const empty = { copy: new Map(), taken: new Map() };
  const unnamed: KeptConsumer = { name: '', hasAll: true, studioIds: [], createdMs: 0, ...empty };
  const { copy, taken } = unnamed;
  const [ending, over] = [new AbortController(), new AbortController()];
  const fail = (broken: string) => sim.history.fail(broken);
  const consumers = [false, true].map(async (watches, index) => {
    const { leads, ...others } = sim.crmAt(index);
    const watchLeadChanges: typeof leads.watchLeadChanges = (...asked) =>
      expectFewRepeats(sim, leads.watchLeadChanges(...asked));
    const core = { ...others, leads: { ...leads, watchLeadChanges } };
    while (isLong && !ending.signal.aborted) {
      const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(AWAKE_MS)]);
      await consumeFeed(core, copy, createChance(index), { signal, watches, fail, taken });
      await sleep(ASLEEP_MS, undefined, { signal: ending.signal }).catch(() => {});
    }
    await consumeFeed(core, copy, createChance(index), { signal: over.signal, watches, fail, taken });
  });

  /** Waits until a consumer has all changes; returns a violation if it does not get them in time. */
  async function waitForAll(consumer: string): Promise<string[]> {
    const { leads, consumers } = sim.crmAt(0);
    const isWaiting = async () => {
      // A consumer gets the changes that it has set aside only after they are taken back.
      if (consumer !== '') await consumers.takeBackLeadChanges({ consumer, all: true }, CRM_TIMEOUT);
      const { changes } = await leads.pullLeadChanges({ consumer }, CRM_TIMEOUT);
      const { consumers: listed } = await consumers.listConsumers({}, CRM_TIMEOUT);
      const { isBackfilling, waiting, setAside } = listed.find(({ name }) => name === consumer) ?? {};
      return changes.length > 0 || isBackfilling || (waiting?.leadCount ?? 0) + (setAside?.leadCount ?? 0) > 0;
    };
    const giveUp = now() + ARRIVES_WITHIN_MS;
    let isLeft = true;
    for (; isLeft && now() < giveUp; await sleep(50)) isLeft = await isWaiting().catch(() => true);
    return isLeft ? [`changes still wait for consumer "${consumer}" after ${ARRIVES_WITHIN_MS} ms`] : [];
  }

  function differences(
    { name: consumer, copy, hasAll, studioIds }: KeptConsumer,
    finalLeads: ReadonlyMap<string, readonly FinalLead[]>,
  ) {
    const isOwn = (studioId: string) => studioIds.length === 0 || studioIds.includes(studioId);
    const finals = [...finalLeads].flatMap(([studioId, ofStudio]) => (isOwn(studioId) ? ofStudio : []));
    const wrong = finals.flatMap((lead) => {
      const stored = copy.get(lead.id)?.lead;
      if (stored ? isDeepStrictEqual(finalLead(stored), lead) : !hasAll) return [];
      return `consumer "${consumer}" has ${stored ? JSON.stringify(finalLead(stored)) : 'nothing'} of ${JSON.stringify(lead)}`;
    });
    const unaware = sim.history.of('erased').filter(({ studioId, leadId }) => {
      const stored = copy.get(leadId);
      return stored ? stored.lead?.displayName !== '' : hasAll && isOwn(studioId);
    });
    const testLeadIds = [...testLeads(sim)].filter((id) => copy.has(id));
    return [
      ...wrong,
      ...testLeadIds.map((id) => `consumer "${consumer}" is sent ${id}, a lead of a test studio`),
      ...unaware.map(({ leadId }) => `consumer "${consumer}" is not told that ${leadId} is erased`),
    ];
  }

  return {
    async violations(finalLeads) {
      ending.abort();
      const named = keptConsumers(sim);
      // Wakes the consumers that were asleep.
      const woken = named.map(({ name, copy, taken }, index) =>
        // Half of them watch: a watch sends waiting changes without another call.
        consumeFeed(sim.crmAt(index), copy, createChance(index), {
          signal: over.signal,
          watches: index % 2 === 0,
          consumer: name,
          fail,
          taken,
        }),
      );
      const left = (await Promise.all(['', ...named.map(({ name }) => name)].map(waitForAll))).flat();
      over.abort();
      await Promise.all([...consumers, ...woken]);
      return [
        ...left,
        ...[unnamed, ...named].flatMap((each) => [...differences(each, finalLeads), ...kindViolations(sim, each)]),
      ];
    },
  };
}
