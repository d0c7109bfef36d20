/*
 * Writes a database with every kind of data of this release, through its use cases, and a file with the results of its store, as
 * fixtures for later releases:
 *
 *   npm run release:database sqlite:test/upgrade/sqlite-2.0.db test/upgrade/sqlite-2.0.json
 *   npm run release:database mongodb://… test/upgrade/mongodb-2.0.json
 */
import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { hashKeySecret } from '../../common/rules/key-secret.ts';
import type { Contact } from '../../src/domain/contact.ts';
import { readTexts } from '../../src/domain/lead-data.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import type { Refusal } from '../../src/domain/refusal.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Credential } from '../../src/store/port/api-keys.ts';
import { changeLeadStage, updateLead } from '../../src/usecases/change-lead.ts';
import { createConsumer, listDeliveries } from '../../src/usecases/consumers.ts';
import { createLead } from '../../src/usecases/create-lead.ts';
import { eraseLead } from '../../src/usecases/erase-leads.ts';
import { importLeads } from '../../src/usecases/import-leads.ts';
import { createApiKey, putApiKeyQuota, replaceApiKey, revokeApiKey } from '../../src/usecases/manage-api-keys.ts';
import { putLeadSource, putMember } from '../../src/usecases/members-and-sources.ts';
import { setAsideLeadChanges } from '../../src/usecases/set-aside.ts';
import { putStudio } from '../../src/usecases/studios.ts';
import { acknowledgeIn, changesIn } from '../contract/store-actions.ts';
import { aLoggedRequest, BY, DAY_MS, plus } from '../support/builders.ts';
import { collectAnswers, type Made, type MadeLead } from './answers.ts';
import { readDocuments } from './mongo-documents.ts';
import { oneItemPerLine } from './one-item-per-line.ts';

const [databaseUrl = '', answersFile = ''] = process.argv.slice(2);
const store = await openStore(databaseUrl);
const deps = { store, clock: systemClock, newId };

const leads: MadeLead[] = [];
async function create(
  studioId: string,
  contact: Contact,
  more: Pick<MadeLead, 'sourceId' | 'note'> = {},
  bearer?: Credential,
) {
  const requested = { studioId, idempotencyKey: newId(), displayName: 'Grace Hopper 👩🏽‍🚀', contact, ...more };
  const { lead } = await createLead(deps, { ...requested, ...readTexts(requested) }, bearer);
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
const bearer = (await store.findCredential(hashKeySecret(website.secret))) ?? undefined;
await create('berlin', byEmail('by-key@example.org'), {}, bearer);
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
  ...readTexts({ displayName: 'Ada Lovelace' }),
  contact: byEmail(`${stage}-of-before@example.org`),
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
await acknowledgeIn(store, (await changesIn(store)).slice(0, 3));
await create('moves', byPhone('030 7654321'));
await putStudio(deps, { ...berlin, id: 'moves', regionCode: 'AT', quotaLimit: null });
await create('suspended', byEmail('u@example.org'));
await putStudio(deps, { ...berlin, id: 'suspended', status: 'suspended', regionCode: undefined, memberId: 'owner' });

// Enquiries, one of them at a lead that was corrected.
for (const { contact } of [again, { contact: fields.contact }]) {
  const { leads: before } = { leads: [...leads] };
  const refusal = await create('berlin', contact, { note: 'And on Sundays?' }).catch((error: Refusal) => error.reason);
  if (refusal !== 'LEAD_ALREADY_OPEN' || leads.length > before.length) throw new Error('a second lead was created');
}
await putStudio(deps, { ...berlin, id: 'keeps-nothing', keepEnquiries: false });
await create('keeps-nothing', byEmail('once@example.org'));

// Retention.
await putStudio(deps, { ...berlin, id: 'retains', retentionDays: 365 });
const kept = await create('retains', byEmail('kept@example.org'), { note: 'For ever.' });
await store.putRetentionTime(null, systemClock());

// A test studio, and an ended one.
await putStudio(deps, { ...berlin, id: 'tests', isTest: true });
await create('tests', byEmail('tested@example.org'));
await putStudio(deps, { ...berlin, id: 'ended' });
const last = await create('ended', byEmail('last@example.org'), { note: 'Nobody reads it.' });
await store.endStudio('ended', { ...BY, now: systemClock() });
await eraseLead(deps, { studioId: 'ended', leadId: last.id, caller: 'crm' });

// A consumer of all leads, which has acknowledged and set aside some, and one of a studio's later changes.
const all = { studioIds: [], allStudios: true, includeTestStudios: true };
const copy = await createConsumer(deps, { ...all, name: 'copy', start: 'all-leads', caller: 'crm' });
const one = { studioIds: ['berlin'], allStudios: false, includeTestStudios: false };
await createConsumer(deps, { ...one, name: 'berlin-only', start: 'now', caller: 'crm' });
const sent = (await listDeliveries(deps, copy.number, 100)) ?? [];
const [handled, later, never] = sent.map(({ lead, revision }) => ({
  studioId: lead.studioId,
  leadId: lead.id,
  revision,
}));
if (!handled || !later || !never) throw new Error('the consumer was sent too few leads');
await store.acknowledgeDeliveries(copy.number, [handled]);
await setAsideLeadChanges(deps, copy, [
  { ...later, reason: 'HTTP_503', retryAt: plus(systemClock(), DAY_MS) },
  { ...never, reason: 'HTTP_410', retryAt: null },
]);

// A change that its caller may repeat, a logged request, and a restore.
const repeatable = { studioId: 'retains', leadId: kept.id, requestId: newId(), caller: 'crm' };
await changeLeadStage(deps, { ...repeatable, stage: 'contacted' });
await store.recordRequests([
  aLoggedRequest({ studioId: 'berlin', leadId: again.id, id: newId(), apiKeyId: website.key.id }),
]);
await store.raiseEpoch(systemClock(), systemClock(), { memberId: null, caller: 'operator' });

const secrets = [website, shop, replaced, revoked].map(({ secret }) => secret);
const studioIds = ['berlin', 'moves', 'suspended', 'keeps-nothing', 'retains', 'tests', 'ended'];
const made: Made = { studioIds, leads, secrets };
const answers = await collectAnswers(store, made);
await store.close();
expectNothingEmpty();
const collections = databaseUrl.startsWith('sqlite:') ? undefined : await readDocuments(databaseUrl);
writeFileSync(answersFile, `${oneItemPerLine({ made, answers, ...(collections && { collections }) })}\n`);

/** Expects a row in every table, because one without a row belongs to a feature that is not used above. @throws Error */
function expectNothingEmpty(): void {
  if (!databaseUrl.startsWith('sqlite:')) return;
  const database = new DatabaseSync(databaseUrl.slice('sqlite:'.length));
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    .all();
  const empty = tables.filter(({ name }) => !database.prepare(`SELECT 1 FROM ${name} LIMIT 1`).get());
  // Removes the log of the last writes, which is not part of the fixture.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  if (empty.length > 0) throw new Error(`nothing is stored in ${empty.map(({ name }) => name).join(', ')}`);
}
