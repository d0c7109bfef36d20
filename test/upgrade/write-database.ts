/*
 * Writes a database with every kind of data that this release can store, through its use cases, and a file with what its store
 * returns, as fixtures for later releases:
 *
 *   npm run release:database sqlite:test/upgrade/sqlite-1.1.db test/upgrade/sqlite-1.1.json
 *   npm run release:database mongodb://… test/upgrade/mongodb-1.1.json
 */
import { writeFileSync } from 'node:fs';
import type { Contact } from '../../src/domain/contact.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import { openStore } from '../../src/store/open-store.ts';
import { acknowledgeLeadChanges } from '../../src/usecases/change-feed.ts';
import { changeLeadStage, updateLead } from '../../src/usecases/change-lead.ts';
import { createLead } from '../../src/usecases/create-lead.ts';
import { eraseLead } from '../../src/usecases/erase-leads.ts';
import { importLeads } from '../../src/usecases/import-leads.ts';
import { createApiKey, putApiKeyQuota, replaceApiKey, revokeApiKey } from '../../src/usecases/manage-api-keys.ts';
import { putLeadSource, putMember } from '../../src/usecases/members-and-sources.ts';
import { putStudio } from '../../src/usecases/studios.ts';
import { DAY_MS, plus } from '../support/builders.ts';
import { answersOf, type Made, type MadeLead } from './answers.ts';
import { documentsOf } from './mongo-documents.ts';
import { oneItemPerLine } from './one-item-per-line.ts';

const [databaseUrl = '', answersFile = ''] = process.argv.slice(2);
const store = await openStore(databaseUrl);
const deps = { store, clock: systemClock, newId };

const leads: MadeLead[] = [];
async function create(studioId: string, contact: Contact, more: Pick<MadeLead, 'sourceId' | 'note'> = {}) {
  const requested = { studioId, idempotencyKey: newId(), displayName: 'Grace Hopper 👩🏽‍🚀', contact, ...more };
  const { lead } = await createLead(deps, { sourceId: undefined, note: undefined, ...requested });
  leads.push({ ...requested, id: lead.id });
  return lead;
}
const byEmail = (value: string): Contact => ({ type: 'email', value });
const byPhone = (value: string): Contact => ({ type: 'phone', value });
const move = (leadId: string, stage: 'contacted' | 'won' | 'lost' | 'new') =>
  changeLeadStage(deps, { studioId: 'berlin', leadId, stage, memberId: 'owner', caller: 'crm' });

const berlin = { id: 'berlin', status: 'active', regionCode: 'DE', quotaLimit: 500, caller: 'crm' } as const;
await putStudio(deps, berlin);
await putStudio(deps, { ...berlin, id: 'moves', quotaLimit: undefined });
await putStudio(deps, { ...berlin, id: 'suspended', regionCode: null, memberId: 'owner' });
await putMember(deps, { studioId: 'berlin', id: 'owner', role: 'owner' });
const [form, closed] = [newId(), newId()];
await putLeadSource(deps, { studioId: 'berlin', id: form, name: 'Contact form', enabled: true });
await putLeadSource(deps, { studioId: 'berlin', id: closed, name: 'Fair of 2025', enabled: false });

const owner = { studioId: 'berlin', memberId: 'owner', caller: 'crm' };
const expiresAt = plus(systemClock(), 300 * DAY_MS);
const scopes = ['leads.create', 'leads.read'] as const;
const website = await createApiKey(deps, { ...owner, name: 'Website', scopes, expiresAt });
await putApiKeyQuota(deps, { ...owner, keyId: website.key.id, quotaLimit: 50 });
const shop = await createApiKey(deps, { ...owner, name: 'Shop', scopes: ['leads.create'], expiresAt });
const replaced = await replaceApiKey(deps, { ...owner, keyId: shop.key.id, expiresAt: undefined });
const revoked = await createApiKey(deps, { ...owner, name: 'Gone', scopes, expiresAt });
await revokeApiKey(deps, { studioId: 'berlin', memberId: null, caller: 'operator', keyId: revoked.key.id });

await create('berlin', byEmail('new@straße.example'), { sourceId: form, note: 'Calls back.\n\u{2028}' });
await create('berlin', byPhone('030 1234567 x200'));
const moved = await create('berlin', byPhone('+49 171 2345678'));
await move(moved.id, 'contacted');
const won = await create('berlin', byEmail('won@example.org'));
await move(won.id, 'won');
const again = await create('berlin', byEmail('again@example.org'));
await move(again.id, 'lost');
await move(again.id, 'new');
const corrected = await create('berlin', byEmail('wrong@example.org'), { note: 'A note.' });
const fields = { displayName: 'Grace Brewster Hopper', contact: byEmail('right@example.org'), note: null };
await updateLead(deps, { studioId: 'berlin', leadId: corrected.id, fields, memberId: 'owner', caller: 'crm' });
const erased = await create('berlin', byEmail('erased@example.org'), { sourceId: form, note: 'Nobody knows.' });
await eraseLead(deps, { studioId: 'berlin', leadId: erased.id, memberId: 'owner', caller: 'crm' });
const imports = (['new', 'won'] as const).map((stage) => ({
  idempotencyKey: newId(),
  displayName: 'Ada Lovelace',
  contact: byEmail(`${stage}-of-before@example.org`),
  sourceId: undefined,
  note: undefined,
  stage,
  createdAt: new Date('2019-05-04T10:00:00.123Z'),
  updatedAt: new Date('2020-05-04T10:00:00.123Z'),
}));
for (const [index, result] of (await importLeads(deps, { studioId: 'berlin', leads: imports })).entries()) {
  if (result.kind === 'refused') throw result.refusal;
  if (result.kind !== 'imported') throw new Error('the lead was there before it was imported');
  const { idempotencyKey, displayName, contact } = imports[index] as (typeof imports)[number];
  leads.push({ studioId: 'berlin', idempotencyKey, displayName, contact, id: result.leadId });
}
for (const { lead, revision } of (await store.listLeadChanges(100)).slice(0, 3)) {
  await acknowledgeLeadChanges(deps, { hurry() {} }, [{ studioId: lead.studioId, leadId: lead.id, revision }]);
}
// A studio with a renewal of claims in progress.
await create('moves', byPhone('030 7654321'));
await putStudio(deps, { ...berlin, id: 'moves', regionCode: 'AT', quotaLimit: null });
await create('suspended', byEmail('u@example.org'));
await putStudio(deps, { ...berlin, id: 'suspended', status: 'suspended', regionCode: undefined, memberId: 'owner' });

const secrets = [website, shop, replaced, revoked].map(({ secret }) => secret);
const made: Made = { studioIds: ['berlin', 'moves', 'suspended'], leads, secrets };
const answers = await answersOf(store, made);
await store.close();
const collections = databaseUrl.startsWith('sqlite:') ? undefined : await documentsOf(databaseUrl);
writeFileSync(answersFile, `${oneItemPerLine({ made, answers, ...(collections && { collections }) })}\n`);
