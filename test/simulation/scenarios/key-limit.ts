import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { DAY_MS, times } from '../../support/builders.ts';
import { BOTH_SCOPES } from '../../support/core-clients.ts';
import { CRM_TIMEOUT, STUDIOS } from '../simulation.ts';
import { studioAt } from './choices.ts';
import { outcomeOf } from './crm.ts';
import { aScenario } from './scenario.ts';

/** The maximum number of live keys of a studio; and a number above it. */
const MAX_KEYS = 20;
const KEYS = 24;

/** More keys are requested concurrently, from all cores, than a studio may have. */
export const hoardKeys = aScenario({
  weight: 1,
  choice: fc.record({ core: fc.nat(1) }),
  async run(sim, { core }) {
    // A studio that is used little: from now on it has no room for another key.
    const studio = studioAt(sim, STUDIOS - 2);
    const owner = { studioId: studio.id, memberId: 'owner' };
    await Promise.all(
      times(KEYS, async (index) => {
        const expireTime = timestampFromMs(Date.now() + DAY_MS);
        const request = { ...owner, name: 'One of many', scopes: [...BOTH_SCOPES], expireTime };
        const outcome = await outcomeOf(sim.crmAt(core + index).apiKeys.createApiKey(request, CRM_TIMEOUT));
        if (!('answer' in outcome)) return;
        const { apiKey, secret } = outcome.answer;
        const key = { apiKeyId: apiKey?.id ?? '', secret, mayRead: true, mayCreate: true, mayBecomeInvalid: false };
        sim.addKey(studio, key, 'owner');
      }),
    );
    const listed = await outcomeOf(sim.crmAt(core).apiKeys.listApiKeys(owner, CRM_TIMEOUT));
    if (!('answer' in listed)) return;
    const living = listed.answer.apiKeys.filter(({ revokeTime }) => revokeTime === undefined);
    if (living.length > MAX_KEYS)
      sim.history.fail(`${studio.id} has ${living.length} keys where it may have ${MAX_KEYS}`);
  },
});
