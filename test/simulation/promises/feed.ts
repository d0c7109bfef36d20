import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { chanceOf } from '../../crash/chance.ts';
import { type Copy, consumeFeed } from '../../support/feed-consumer.ts';
import { type FinalLead, finalLead } from '../final-state.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';

/** How long after the last change all changes may take to arrive; milliseconds. */
const ARRIVES_WITHIN_MS = 30_000;

/** Consumers of the change feed, one that pulls and one that watches; both die now and then. */
export function followFeed(sim: Simulation): {
  /** Waits for the last changes, and compares the copy of the consumers with the final leads. */
  violations(finalLeads: ReadonlyMap<string, readonly FinalLead[]>): Promise<string[]>;
} {
  const copy: Copy = new Map();
  const over = new AbortController();
  const consumers = [false, true].map((watches, index) =>
    consumeFeed(sim.crmAt(index), copy, chanceOf(index), { signal: over.signal, watches }),
  );
  return {
    async violations(finalLeads) {
      const { leads } = sim.crmAt(0);
      const giveUp = now() + ARRIVES_WITHIN_MS;
      const isWaiting = () =>
        leads.pullLeadChanges({}, CRM_TIMEOUT).then(
          ({ changes }) => changes.length > 0,
          () => true,
        );
      let isLeft = await isWaiting();
      for (; isLeft && now() < giveUp; isLeft = await isWaiting()) await sleep(50);
      over.abort();
      await Promise.all(consumers);
      const left = isLeft ? [`changes still wait for consumers after ${ARRIVES_WITHIN_MS} ms`] : [];
      const wrong = [...finalLeads.values()].flat().flatMap((lead) => {
        const stored = copy.get(lead.id)?.lead;
        if (stored && isDeepStrictEqual(finalLead(stored), lead)) return [];
        return `consumers of the feed have ${stored ? JSON.stringify(finalLead(stored)) : 'nothing'} of ${JSON.stringify(lead)}`;
      });
      const kept = sim.history.of('erased').filter(({ leadId }) => copy.get(leadId)?.lead?.displayName !== '');
      return [
        ...left,
        ...wrong,
        ...kept.map(({ leadId }) => `consumers of the feed do not hear that ${leadId} is erased`),
      ];
    },
  };
}
