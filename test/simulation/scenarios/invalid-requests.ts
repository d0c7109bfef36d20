import fc from 'fast-check';
import { LEADS } from '../../support/service.ts';
import { ownContact } from '../contacts.ts';
import { type KnownStudio, type Simulation, STUDIOS } from '../simulation.ts';
import { keyOf, newest, one, recent, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import { leadChoice, leadOf, requestOf, sendRequest } from './website.ts';

const url = fc.nat(2);
const other = fc.integer({ min: 1, max: STUDIOS - 1 });

const otherThan = (sim: Simulation, index: number, distance: number): KnownStudio =>
  studioAt(sim, (index + distance) % STUDIOS);

/** A website server continues to use a secret that has been replaced. */
export const formerSecret = aScenario({
  weight: 3,
  choice: fc.record({ lead: leadChoice, which: recent, creates: fc.boolean(), url }),
  async run(sim, { lead, which, creates, url }) {
    const known = studioAt(sim, lead.studio);
    const ids = known.keys.map(({ apiKeyId }) => apiKeyId);
    const secrets = known.keys.map(({ secret }) => secret);
    const former = [...sim.keyBySecret]
      .filter(([secret, id]) => ids.includes(id) && !secrets.includes(secret))
      .map(([secret]) => secret);
    const secret = newest(former, which);
    if (secret === undefined) return;
    const operation = creates
      ? ({ name: 'create', lead: leadOf(sim, known, lead) } as const)
      : ({ name: 'get', leadId: newest(known.leadIds, which) ?? sim.uuid('unknown lead') } as const);
    await sendRequest(sim, known, secret, one(sim.world.urls, url), operation);
  },
});

/** A lead names a source of another studio. */
export const foreignSource = aScenario({
  weight: 1,
  choice: fc.record({ lead: leadChoice, other, url }),
  async run(sim, { lead, other, url }) {
    const known = studioAt(sim, lead.studio);
    const sourceId = one(otherThan(sim, lead.studio, other).sourceIds, other);
    const sent = { ...leadOf(sim, known, lead), sourceId };
    await sendRequest(sim, known, keyOf(known, 0).secret, one(sim.world.urls, url), { name: 'create', lead: sent });
  },
});

/** A list of one studio is continued in another. */
export const foreignCursor = aScenario({
  weight: 1,
  choice: fc.record({ studio, other, url }),
  async run(sim, { studio, other, url }) {
    const [own, foreign] = [studioAt(sim, studio), otherThan(sim, studio, other)];
    const address = one(sim.world.urls, url);
    const list = (of: KnownStudio, query: string) =>
      sendRequest(sim, of, keyOf(of, 0).secret, address, { name: 'list', walk: sim.newWalk(), page: 0, query });
    const first = await list(own, '?limit=1');
    const cursor = first?.status === 200 && JSON.parse(first.text).nextCursor;
    if (!cursor) return;
    const answer = await list(foreign, `?cursor=${cursor}`);
    if (answer?.status === 200) sim.history.fail(`a cursor of ${own.id} is followed in ${foreign.id}: ${answer.text}`);
  },
});

/** A creation that violates one rule of its format: it must create nothing. */
export const wrongFormat = aScenario({
  weight: 2,
  choice: fc.record({
    studio,
    fault: fc.constantFrom('charset', 'unknown field', 'cut', 'no key', 'packed'),
    number: fc.nat(),
    url,
  }),
  async run(sim, { studio, fault, number, url }) {
    const { id, ...known } = studioAt(sim, studio);
    const idempotencyKey = sim.uuid('of wrong form', id, number);
    const lead = {
      idempotencyKey,
      displayName: `Ada ${sim.personal}`,
      contact: ownContact(sim.personal, idempotencyKey),
      note: `${idempotencyKey} ${sim.personal}`,
    };
    const { method, headers, body = '' } = requestOf({ name: 'create', lead });
    const { 'idempotency-key': key, ...others } = headers;
    const changed = {
      charset: [{ ...headers, 'content-type': 'application/json; charset=iso-8859-1' }, body],
      'unknown field': [headers, JSON.stringify({ ...JSON.parse(body), stage: 'won' })],
      cut: [headers, body.slice(0, -2)],
      'no key': [others, body],
      packed: [{ ...headers, 'content-encoding': 'gzip' }, body],
    } as const;
    const [sentHeaders, sentBody] = changed[fault as keyof typeof changed];
    const authorization = `Bearer ${keyOf({ id, ...known }, 0).secret}`;
    const address = one(sim.world.urls, url) + LEADS;
    const request = { method, headers: { ...sentHeaders, authorization }, body: sentBody };
    const answer = await fetch(address, { ...request, signal: AbortSignal.timeout(15_000) }).catch(() => undefined);
    const text = await answer?.text().catch(() => '');
    if (answer?.ok) sim.history.fail(`a creation with this fault: ${fault}, is answered ${answer.status} ${text}`);
  },
});
