import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { keyOf, mostlyFirst, one, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import { ask } from './website.ts';

/** As many as a small quota has, and some. */
const REQUESTS = 40;

/** How soon somebody comes again who was told to wait, and for how long they do so at most; milliseconds. */
const AGAIN_AFTER_MS = 20;
const COMES_FOR_MS = 4500;

/** Somebody who asks until the quota is used up, and then again and again until it is not. */
export const impatient = aScenario({
  weight: 3,
  choice: fc.record({ studio, key: mostlyFirst(3), url: fc.nat(2) }),
  async happen(life, { studio, key, url }) {
    const known = studioAt(life, studio);
    const { secret } = keyOf(known, key);
    const isLetIn = async () => {
      const operation = { name: 'get', leadId: life.uuid('nobody’s lead') } as const;
      const answer = await ask(life, known, secret, one(life.world.urls, url), operation);
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
