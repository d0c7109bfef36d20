import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { DAY_MS } from '../../support/builders.ts';
import { BOTH_SCOPES } from '../../support/core-clients.ts';
import { now, type Span } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { CLOCKS, setTo } from './clocks.ts';
import { asFarAsDefinite, definiteOutcome } from './definite-outcomes.ts';
import { byFetch, FIRST_PAGE } from './requests.ts';
import { aScenario } from './scenario.ts';
import { makeSeparateStudio } from './separate-studio.ts';

/** How long a key is used after its expiry; milliseconds. */
const USED_AFTER_MS = 1500;

/** Uses a key that expires: it is valid until then, and refused afterwards. Then renews it, and revokes it. */
export const endKey = aScenario({
  weight: 2,
  choice: fc.record({ core: fc.nat(1), lastsMs: lasting(100, 4000) }),
  run: (sim, { core, lastsMs }) =>
    asFarAsDefinite(async () => {
      const { id: studioId } = await makeSeparateStudio(sim);
      await sim.inTurn(CLOCKS, () => end(sim, core, studioId, lastsMs));
    }),
});

async function end(sim: Simulation, core: number, studioId: string, lastsMs: number): Promise<void> {
  for (const clock of sim.world.clocks) setTo(sim, clock, 0);
  const { apiKeys } = sim.crmAt(core);
  const expiresAt = Date.now() + lastsMs;
  const begin = now();
  const expiryMs = begin + lastsMs;
  const owner = { studioId, memberId: 'owner' };
  const request = { ...owner, name: 'Short', scopes: [...BOTH_SCOPES], expireTime: timestampFromMs(expiresAt) };
  // It is refused if an attempt comes after the expiry.
  const made = await definiteOutcome(sim, `a key of ${studioId} is made`, () =>
    apiKeys.createApiKey(request, CRM_TIMEOUT),
  );
  if (!('answer' in made)) return;
  const { apiKey, secret } = made.answer;
  sim.keyBySecret.set(secret, apiKey?.id ?? '');
  const what = `secret ${secret}`;
  const put = (value: string, span: Span) =>
    sim.history.add({ kind: 'put', party: 'clock', what, value, isDone: true, span });
  put('valid', { begin, end: begin });
  // Clocks have whole milliseconds.
  put('invalid', { begin: expiryMs - 1, end: expiryMs + 1 });
  while (now() < expiryMs + USED_AFTER_MS) {
    await Promise.all([...sim.world.urls, ...sim.world.gatewayUrls].map((url) => readWith(sim, url, secret)));
    await sleep(50);
  }
  const replace =
    (expireTime = {}) =>
    () =>
      apiKeys.replaceApiKey({ ...owner, apiKeyId: apiKey?.id ?? '', ...expireTime }, CRM_TIMEOUT);
  const refused = await definiteOutcome(sim, `an expired key of ${studioId} is replaced`, replace());
  if (!('refused' in refused) || refused.refused !== 'KEY_EXPIRED')
    sim.history.fail(`an expired key of ${studioId} can be replaced without a new expiry`);
  const later = { expireTime: timestampFromMs(Date.now() + DAY_MS) };
  const replaced = await definiteOutcome(sim, `a key of ${studioId} is renewed`, replace(later));
  if (!('answer' in replaced))
    return sim.history.fail(`an expired key of ${studioId} cannot be renewed: ${replaced.refused}`);
  sim.keyBySecret.set(replaced.answer.secret, apiKey?.id ?? '');
  sim.put(`secret ${replaced.answer.secret}`, 'valid');
  // A lost attempt may still be executed, and replace this secret, too.
  for (const each of sim.isDisturbedSince(begin) ? [secret] : [secret, replaced.answer.secret])
    await readWith(sim, sim.world.gatewayUrls[0] ?? '', each);
  const revoke = () => apiKeys.revokeApiKey({ ...owner, apiKeyId: apiKey?.id ?? '' }, CRM_TIMEOUT);
  await definiteOutcome(sim, `a key of ${studioId} is revoked`, revoke);
  sim.put(`secret ${replaced.answer.secret}`, 'invalid');
  await sleep(1);
  for (const url of sim.world.gatewayUrls) await readWith(sim, url, replaced.answer.secret);
}

/** Records whether a gateway accepts a secret. */
async function readWith(sim: Simulation, url: string, secret: string): Promise<void> {
  const begin = now();
  const { status } = (await byFetch(sim, url, secret, FIRST_PAGE)) ?? {};
  if (status !== 200 && status !== 401) return;
  const value = status === 200 ? 'valid' : 'invalid';
  const span = { begin, end: now() };
  sim.history.add({ kind: 'registerRead', party: 'website', what: `secret ${secret}`, value, span });
}
