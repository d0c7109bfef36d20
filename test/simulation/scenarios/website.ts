import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { times } from '../../support/builders.ts';
import { createChance } from '../../tools/chance.ts';
import { ownContact, SHARED_CONTACTS, sharedContact } from '../contacts.ts';
import { now, type SentLead } from '../history.ts';
import { type KnownStudio, type Simulation, STUDIOS } from '../simulation.ts';
import { chooseKey, lasting, mostlyFirst, newest, one, recent, studio, studioAt } from './choices.ts';
import { CRM, changeKey, changeLead, putRecord } from './operations.ts';
import { sendRequest } from './requests.ts';
import { aScenario, type Scenario } from './scenario.ts';

/** The number of idempotency keys that a studio's callers use. */
const IDEMPOTENCY_KEYS = 60;

/** More requests than a small quota; how often and how long more follow; a pause that outlasts the excuses of quotas; milliseconds. */
const GREEDY_REQUESTS = 40;
const REPEATS_AFTER_MS = 20;
const REPEATS_FOR_MS = 4500;
const RESTS_FOR_MS = 8000;

/** How long a visitor pauses at most between two actions, normally and during a disturbance; milliseconds. */
const MAX_BETWEEN_MS = 25;
const MAX_BETWEEN_DISTURBED_MS = 200;

export const where = { url: fc.nat(2), key: mostlyFirst(3) };

/** Chooses the lead to create. */
export const leadChoice = fc.record({
  studio,
  idempotencyKey: fc.nat(IDEMPOTENCY_KEYS - 1),
  /** A shared contact instead of the usual one; 0: the usual one. */
  otherContact: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(SHARED_CONTACTS) }),
  otherBody: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(2) }),
  /** One of the studio's sources; 0: none; 3: one of another studio. */
  source: fc.constantFrom(0, 0, 0, 0, 1, 2, 1, 2, 3),
});

export type LeadChoice = typeof leadChoice extends fc.Arbitrary<infer Choice> ? Choice : never;

/** Sends a creation as a website server does, once or several times concurrently. */
export const create = aScenario({
  weight: 20,
  choice: fc.record({ lead: leadChoice, times: fc.constantFrom(1, 1, 1, 1, 2, 5), ...where }),
  async run(sim, { lead, times, url, key }) {
    const known = studioAt(sim, lead.studio);
    const sent = makeLead(sim, known, lead);
    const { secret } = chooseKey(known, key);
    await Promise.all(
      Array.from({ length: times }, (_, index) =>
        sendRequest(sim, known, secret, one(sim.world.urls, url + index), {
          name: 'create',
          lead: sent,
          ...((url + index) % 3 === 2 && { spelled: 'upper' }),
        }),
      ),
    );
  },
});

/** Reads a lead, mostly one of the key's own studio. */
export const get = aScenario({
  weight: 8,
  choice: fc.record({ studio, lead: recent, ofAnother: mostlyFirst(4), ...where }),
  async run(sim, { studio, lead, ofAnother, url, key }) {
    const known = studioAt(sim, studio);
    const leadId = newest(studioAt(sim, ofAnother === 1 ? 1 - (studio % 2) : studio).leadIds, lead);
    const operation = { name: 'get', leadId: leadId ?? sim.uuid('unknown lead') } as const;
    await sendRequest(sim, known, chooseKey(known, key).secret, one(sim.world.urls, url), operation);
  },
});

/** Lists all leads, page by page. Then uses the last cursor in another studio, which must refuse it. */
export const list = aScenario({
  weight: 5,
  choice: fc.record({ studio, limit: fc.constantFrom(1, 3, 25, 100), other: fc.nat(STUDIOS - 1), ...where }),
  async run(sim, { studio, limit, other, url, key }) {
    const known = studioAt(sim, studio);
    const { secret } = chooseKey(known, key);
    const walk = sim.newWalk();
    let [cursor, last]: [string | null, string] = ['', ''];
    for (let page = 0; cursor !== null && page < 100; page += 1) {
      const query: string = `?limit=${limit}${cursor && `&cursor=${cursor}`}`;
      const operation = { name: 'list', walk, page, query } as const;
      const answer = await sendRequest(sim, known, secret, one(sim.world.urls, url + page), operation);
      if (answer?.status !== 200) return;
      last = cursor;
      cursor = JSON.parse(answer.text).nextCursor;
    }
    const foreign = studioAt(sim, other);
    if (last === '' || foreign === known) return;
    const query = `?cursor=${last}`;
    const operation = { name: 'list', walk: sim.newWalk(), page: 0, query } as const;
    const answer = await sendRequest(sim, foreign, chooseKey(foreign, 0).secret, one(sim.world.urls, url), operation);
    if (answer?.status === 200) sim.history.fail(`${foreign.id} accepts a cursor of ${known.id}: ${answer.text}`);
  },
});

/** Uses a secret that has been replaced or revoked. */
export const useFormerSecret = aScenario({
  weight: 4,
  choice: fc.record({ lead: leadChoice, which: recent, creates: fc.boolean(), url: fc.nat(2) }),
  async run(sim, { lead, which, creates, url }) {
    const { known, secret } = formerIn(sim, lead.studio, which) ?? {};
    if (!known || !secret) return;
    const operation = creates
      ? ({ name: 'create', lead: makeLead(sim, known, lead) } as const)
      : ({ name: 'get', leadId: newest(known.leadIds, which) ?? sim.uuid('unknown lead') } as const);
    await sendRequest(sim, known, secret, one(sim.world.urls, url), operation);
  },
});

/** Returns a former secret of a studio, or else of another one, with that studio. */
export function formerIn(sim: Simulation, index: number, which: number) {
  const known = [studioAt(sim, index), ...sim.studios].find((studio) => formerSecrets(sim, studio).length > 0);
  const secret = known && newest(formerSecrets(sim, known), which);
  return known && secret !== undefined ? { known, secret } : undefined;
}

/** Returns the secrets of a studio that have been replaced or revoked, or may have been. */
function formerSecrets(sim: Simulation, { keys }: KnownStudio): string[] {
  const secrets = [...sim.keyBySecret].filter(([, id]) => keys.some(({ apiKeyId }) => apiKeyId === id));
  return secrets
    .map(([secret]) => secret)
    .filter((secret) => sim.listPuts(`secret ${secret}`).some(({ value }) => value === 'invalid'));
}

/** Sends requests until the quota is used up, and then until one is admitted again. The studio's limit may be raised meanwhile. */
export const ignoreRetryAfter = aScenario({
  weight: 6,
  choice: fc.record({ studio, isRaised: fc.constantFrom(true, false, false), ...where }),
  async run(sim, { studio, isRaised, key, url }) {
    const known = studioAt(sim, studio);
    let { secret } = chooseKey(known, key);
    const isAdmitted = async () => {
      const operation = { name: 'get', leadId: sim.uuid('unknown lead') } as const;
      return (await sendRequest(sim, known, secret, one(sim.world.urls, url), operation))?.status !== 429;
    };
    for (let sent = 0; await isAdmitted(); sent += 1) if (sent > GREEDY_REQUESTS) return;
    if (isRaised) {
      await putRecord.run(sim, { studio, putting: { what: 'quota', value: '500000' }, which: 0, by: CRM });
      await changeKey.run(sim, { studio, action: 'create', key: 0, member: 0, scopes: 'both', by: CRM });
      // A gateway learns of the new limit when it looks up a new key.
      secret = chooseKey(known, 0).secret;
    }
    const until = now() + REPEATS_FOR_MS;
    do await sleep(REPEATS_AFTER_MS);
    while (!(await isAdmitted()) && now() < until);
    await sleep(RESTS_FOR_MS);
    await isAdmitted();
  },
});

/** Actions of visitors, with the parameters that a seed chooses. */
const ACTIONS = [
  ...times(4, () => withChosen(create)),
  ...times(2, () => withChosen(changeLead)),
  withChosen(get),
  withChosen(list),
];

function withChosen<Choice>({ choice, run }: Scenario<Choice>): (sim: Simulation, seed: number) => Promise<void> {
  const arbitrary = fc.noBias(choice);
  return (sim, seed) => run(sim, fc.sample(arbitrary, { seed, numRuns: 1 })[0] as Choice);
}

/** Simulates visitors: the usual activity of website servers and the CRM for a while. */
export const visitors = aScenario({
  weight: 6,
  choice: fc.record({ callers: fc.integer({ min: 1, max: 6 }), forMs: lasting(20, 4000), seed: fc.nat() }),
  async run(sim, { callers, forMs, seed }) {
    const until = now() + forMs;
    await Promise.all(
      times(callers, async (caller) => {
        const chance = createChance(seed + caller);
        while (now() < until) {
          await chance.oneOf(ACTIONS)(sim, chance.between(0, 2 ** 31 - 1));
          await sleep(chance.between(0, sim.isDisturbed ? MAX_BETWEEN_DISTURBED_MS : MAX_BETWEEN_MS));
        }
      }),
    );
  },
});

/** Returns the data of a creation; the same for the same choice. */
export function makeLead(sim: Simulation, { id, sourceIds }: KnownStudio, choice: LeadChoice): SentLead {
  const idempotencyKey = sim.uuid('key', id, choice.idempotencyKey);
  const usual = choice.idempotencyKey % 3 === 0 ? undefined : choice.idempotencyKey % SHARED_CONTACTS;
  const shared = choice.otherContact > 0 ? choice.otherContact - 1 : usual;
  const foreign = sim.studios.find((studio) => studio.id !== id)?.sourceIds[0];
  const sourceId = [undefined, ...sourceIds, foreign][choice.source];
  return {
    idempotencyKey,
    // In Unicode's decomposed form, because names are stored as typed.
    displayName: `Jose\u0301 ${sim.personal} ${choice.otherBody === 1 ? 'II' : 'I'}`,
    contact: shared === undefined ? ownContact(sim.personal, idempotencyKey) : sharedContact(sim.personal, shared),
    ...(sourceId !== undefined && { sourceId }),
    note: `${idempotencyKey} ${sim.personal}${choice.otherBody === 2 ? ', and more' : ''}`,
  };
}
