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

/** How long consumers of a long life wait for changes, and then sleep; milliseconds. */
const AWAKE_MS = 20_000;
const ASLEEP_MS = 300_000;

/** How often a watch may send a state without a reason: again when the first named consumer, or test studio, is created. */
const SENDS = 2;

/**
 * Passes on and counts the states of a watch; a state that is sent again has a later waiting time. Others may have displaced
 * it from a full poll, which only takes clocks that are set apart; such a poll has announced more changes.
 */
async function* rarelyTwice({ history }: Simulation, watch: AsyncIterable<WatchLeadChangesResponse>) {
  const sent = new Map<string, { times: number; fullPolls: number }>();
  let fullPolls = 0;
  for await (const message of watch) {
    for (const { lead, revision, firstChangeTime } of message.changes) {
      const state = `${lead?.id} ${revision} ${firstChangeTime?.seconds}.${firstChangeTime?.nanos}`;
      const last = sent.get(state);
      const times = (last?.times ?? 0) + (last && last.fullPolls < fullPolls ? 0 : 1);
      if (times > SENDS) history.fail(`a watch sends ${state} ${times} times`);
      sent.set(state, { times, fullPolls });
    }
    if (message.heldBack) fullPolls += 1;
    yield message;
  }
}

/**
 * Consumers of the change feed, one that pulls and one that watches; both die now and then.
 *
 * @param isLong whether they sleep most of the time, because waiting makes a core query its database twenty times a second
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
      rarelyTwice(sim, leads.watchLeadChanges(...asked));
    const core = { ...others, leads: { ...leads, watchLeadChanges } };
    while (isLong && !ending.signal.aborted) {
      const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(AWAKE_MS)]);
      await consumeFeed(core, copy, createChance(index), { signal, watches, fail, taken });
      await sleep(ASLEEP_MS, undefined, { signal: ending.signal }).catch(() => {});
    }
    await consumeFeed(core, copy, createChance(index), { signal: over.signal, watches, fail, taken });
  });

  /** Waits until nothing waits for a consumer; returns the changes that still do. */
  async function wait(consumer: string): Promise<string[]> {
    const { leads, consumers } = sim.crmAt(0);
    const isWaiting = async () => {
      // Changes that it has set aside are lost to it unless they are taken back.
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
    const kept = sim.history.of('erased').filter(({ studioId, leadId }) => {
      const stored = copy.get(leadId);
      return stored ? stored.lead?.displayName !== '' : hasAll && isOwn(studioId);
    });
    const ofTests = [...testLeads(sim)].filter((id) => copy.has(id));
    return [
      ...wrong,
      ...ofTests.map((id) => `consumer "${consumer}" is sent ${id}, a lead of a test studio`),
      ...kept.map(({ leadId }) => `consumer "${consumer}" does not hear that ${leadId} is erased`),
    ];
  }

  return {
    async violations(finalLeads) {
      ending.abort();
      const named = keptConsumers(sim);
      // Wakes the consumers that were asleep.
      const woken = named.map(({ name, copy, taken }, index) =>
        // A watching consumer gets waiting changes without a new call.
        consumeFeed(sim.crmAt(index), copy, createChance(index), {
          signal: over.signal,
          watches: index % 2 === 0,
          consumer: name,
          fail,
          taken,
        }),
      );
      const left = (await Promise.all(['', ...named.map(({ name }) => name)].map(wait))).flat();
      over.abort();
      await Promise.all([...consumers, ...woken]);
      return [
        ...left,
        ...[unnamed, ...named].flatMap((each) => [...differences(each, finalLeads), ...kindViolations(sim, each)]),
      ];
    },
  };
}
