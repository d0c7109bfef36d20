import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { DAY_MS, times } from '../../support/builders.ts';
import { BOTH_SCOPES, type CoreClients } from '../../support/core-clients.ts';
import { CRM_WAITS_MS, STUDIOS } from '../life.ts';
import { one, studioAt } from './choices.ts';
import { outcomeOf } from './crm.ts';
import { aScenario } from './scenario.ts';

const WAITS = { timeoutMs: CRM_WAITS_MS };

/** The maximum number of live keys of a studio; and a number above it. */
const MAX_KEYS = 20;
const KEYS = 24;

/** More keys are requested concurrently, from all cores, than a studio may have. */
export const hoardKeys = aScenario({
  weight: 1,
  choice: fc.record({ core: fc.nat(1) }),
  async happen(life, { core }) {
    // A studio that is used little: from now on it has no room for another key.
    const studio = studioAt(life, STUDIOS - 2);
    const crmAt = (index: number) => one(life.crm, index) as CoreClients;
    const owner = { studioId: studio.id, memberId: 'owner' };
    await Promise.all(
      times(KEYS, async (index) => {
        const expireTime = timestampFromMs(Date.now() + DAY_MS);
        const request = { ...owner, name: 'One of many', scopes: [...BOTH_SCOPES], expireTime };
        const outcome = await outcomeOf(crmAt(core + index).apiKeys.createApiKey(request, WAITS));
        if (!('answer' in outcome)) return;
        const { apiKey, secret } = outcome.answer;
        const key = { apiKeyId: apiKey?.id ?? '', secret, mayRead: true, mayCreate: true, mayDie: false };
        life.knowKey(studio, key, 'owner');
      }),
    );
    const listed = await outcomeOf(crmAt(core).apiKeys.listApiKeys(owner, WAITS));
    if (!('answer' in listed)) return;
    const living = listed.answer.apiKeys.filter(({ revokeTime }) => revokeTime === undefined);
    if (living.length > MAX_KEYS)
      life.history.breaks(`${studio.id} has ${living.length} keys where it may have ${MAX_KEYS}`);
  },
});
