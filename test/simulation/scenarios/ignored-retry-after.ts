import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { keyOf, mostlyFirst, one, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import { sendRequest } from './website.ts';

/** Somewhat more than a small quota. */
const REQUESTS = 40;

/** The delay before a refused client retries, and for how long it does so at most; milliseconds. */
const AGAIN_AFTER_MS = 20;
const COMES_FOR_MS = 4500;

/** A client sends requests until the quota is used up, and then retries until there is quota again. */
export const ignoreRetryAfter = aScenario({
  weight: 3,
  choice: fc.record({ studio, key: mostlyFirst(3), url: fc.nat(2) }),
  async run(sim, { studio, key, url }) {
    const known = studioAt(sim, studio);
    const { secret } = keyOf(known, key);
    const isLetIn = async () => {
      const operation = { name: 'get', leadId: sim.uuid('unknown lead') } as const;
      const answer = await sendRequest(sim, known, secret, one(sim.world.urls, url), operation);
      return answer?.status !== 429;
    };
    let asked = 0;
    while (await isLetIn()) {
      asked += 1;
      if (asked > REQUESTS) return;
    }
    const until = performance.now() + COMES_FOR_MS;
    do await sleep(AGAIN_AFTER_MS);
    while (!(await isLetIn()) && performance.now() < until);
  },
});
