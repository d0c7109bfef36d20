/*
 * Changes everything that can be changed in a database, in an order that is different each time, until SIGTERM:
 *
 *   node test/contract/change-at-random.ts sqlite:…
 */
import { openStore } from '../../src/store/open-store.ts';
import { aConsumer, aLead, aMember, anApiKey, aStudio, BY, claimsOf, plus } from '../support/builders.ts';

const store = await openStore(process.argv[2] ?? '');
let isEnding = false;
process.once('SIGTERM', () => {
  isEnding = true;
});

await store.putStudio(aStudio({ id: 'random' }), BY);
await store.putStudio(aStudio({ id: 'random-tests', isTest: true }), BY);
await store.putMember(aMember({ studioId: 'random' }), BY);

const pick = <Each>(from: readonly Each[]): Each => from[Math.floor(Math.random() * from.length)] as Each;
const contacts = [1, 2, 3, 4, 5, 6, 7, 8].map((each) => ({ type: 'email', value: `r${each}@example.org` }) as const);
const aNewLead = () => aLead({ studioId: pick(['random', 'random-tests']), contact: pick(contacts) });
const leads = [aNewLead()];
const onLead = () => {
  const { studioId, id: leadId } = pick(leads);
  return { studioId, leadId, memberId: null, now: new Date(), expectedUpdatedAt: null };
};

const ACTIONS: readonly (() => Promise<unknown>)[] = [
  async () => {
    const lead = aNewLead();
    const outcome = await store.createLead(lead, claimsOf(lead), { keepsEnquiry: true });
    if (outcome.kind === 'created') leads.push(lead);
  },
  () => {
    // The contact that it has by now, or another one, which is refused.
    const claims = claimsOf(aLead({ contact: pick(contacts) }));
    return store.changeLeadStage({ ...onLead(), stage: pick(['new', 'contacted', 'won', 'lost']), claims });
  },
  () => {
    const contact = pick(contacts);
    return store.updateLead({
      ...onLead(),
      correction: { contact, note: 'corrected' },
      claims: claimsOf(aLead({ contact })),
    });
  },
  () => {
    const { expectedUpdatedAt: _, ...erasure } = onLead();
    return store.eraseLead(erasure);
  },
  () => store.deleteLeads('random-tests', 5, { memberId: null, now: new Date() }),
  () => store.createConsumer(aConsumer({ name: pick(['one', 'two']), includesTests: true }), BY),
  async () => {
    const { number = 0 } = pick(await store.listConsumers()) ?? {};
    const { changes = [] } = (await store.listDeliveries(number, 20)) ?? {};
    const seen = changes.map(({ lead: { studioId, id: leadId }, revision }) => ({ studioId, leadId, revision }));
    const aside = seen.slice(0, 1).map((each) => ({ ...each, reason: 'LATER', retryAt: null }));
    if (aside.length > 0) await store.setAsideDeliveries(number, aside, new Date());
    await store.acknowledgeDeliveries(number, seen.slice(1));
  },
  async () => {
    const changes = await store.listLeadChanges(10);
    const seen = changes.map(({ lead: { studioId, id: leadId }, revision }) => ({ studioId, leadId, revision }));
    await store.acknowledgeLeadChanges(seen);
  },
  () => store.resendLeads({ studioId: 'random', after: null, limit: 5 }, new Date()),
  async () => {
    if (Math.random() < 0.1) await store.removeConsumer((await store.listConsumers())[0]?.number ?? 0, BY);
  },
  async () => {
    const key = anApiKey({ studioId: 'random', expiresAt: plus(new Date(), 1e9) });
    if (await store.createApiKey(key, new Date())) await store.revokeApiKey('random', key.id, BY);
  },
];

console.log('changes began');
let done = 0;
for (; !isEnding; done += 4) await Promise.all([1, 2, 3, 4].map(() => pick(ACTIONS)()));
await store.close();
console.log(`${done} changes done`);
