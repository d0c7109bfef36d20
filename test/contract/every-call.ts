import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aConsumer,
  aLead,
  aLeadSource,
  aLoggedRequest,
  aMember,
  anApiKey,
  aStudio,
  BY,
  keysFor,
  NOW,
  STUDIO_ID,
} from '../support/builders.ts';
import { aReplacement, correctLead, moveLead } from './store-actions.ts';

/** The records that the calls use. */
export const lead = aLead({ createdAt: NOW });
export const key = anApiKey();
export const source = aLeadSource();

const keys = keysFor(lead);
const leadRef = { studioId: STUDIO_ID, leadId: lead.id };
const keyRef = { studioId: STUDIO_ID, keyId: key.id };

/** Stores the records. */
export async function arrange(store: Store): Promise<void> {
  await store.putStudio(aStudio(), BY);
  await store.putMember(aMember(), BY);
  await store.putLeadSource(source, BY);
  await store.createApiKey(key, NOW);
  await store.createLead(lead, keys);
  // Listing changes first distributes pending ones, which is a write.
  await store.distributeLeadChanges();
}

type Call = (store: Store) => Promise<unknown>;

/** One call of every method of the port, and whether it writes. Add new methods here. */
const CALLS: { readonly [Method in Exclude<keyof Store, 'close'>]: readonly ['reads' | 'writes', Call] } = {
  check: ['reads', (store) => store.check()],
  createLead: ['writes', (store) => createAnother(store)],
  findLeadByIdempotencyKey: ['reads', (store) => store.findLeadByIdempotencyKey(STUDIO_ID, newId())],
  findLead: ['reads', (store) => store.findLead(STUDIO_ID, lead.id)],
  findPublicLead: ['reads', (store) => store.findPublicLead(STUDIO_ID, lead.id)],
  findLeadRecord: ['reads', (store) => store.findLeadRecord(STUDIO_ID, lead.id)],
  presenceOfLead: ['reads', (store) => store.presenceOfLead(STUDIO_ID, lead.id)],
  findMissingLeads: ['reads', (store) => store.findMissingLeads(STUDIO_ID, [lead.id])],
  listLeads: ['reads', (store) => store.listLeads(STUDIO_ID, null, 10)],
  listPublicLeads: ['reads', (store) => store.listPublicLeads(STUDIO_ID, null, 10)],
  listLeadsToCount: ['reads', (store) => store.listLeadsToCount(STUDIO_ID, null, 10)],
  measureStage: ['reads', (store) => store.measureStage(STUDIO_ID, 'new', undefined, 10)],
  walkLeads: ['reads', (store) => store.walkLeads(STUDIO_ID, null, 10)],
  findLeadsOfContact: ['reads', (store) => store.findLeadsOfContact(STUDIO_ID, keys.contactKeys)],
  changeLeadStage: ['writes', (store) => moveLead(store, lead, 'won')],
  updateLead: ['writes', (store) => correctLead(store, lead, { displayName: 'Ada King' })],
  isLeadChangeApplied: ['reads', (store) => store.isLeadChangeApplied(STUDIO_ID, lead.id, newId())],
  resendLeads: ['writes', (store) => store.resendLeads({ studioId: STUDIO_ID, after: null, limit: 10 }, NOW)],
  distributeLeadChanges: ['writes', (store) => store.distributeLeadChanges()],
  createConsumer: ['writes', (store) => store.createConsumer(aConsumer({ name: 'reporting' }), BY)],
  listConsumers: ['reads', (store) => store.listConsumers()],
  removeConsumer: ['writes', (store) => store.removeConsumer(1, BY)],
  removeOrphans: ['writes', (store) => store.removeOrphans()],
  findStudioAfter: ['reads', (store) => store.findStudioAfter('')],
  putBackfills: ['writes', (store) => store.putBackfills({ ...aConsumer(), number: 1, backfills: [] }, [])],
  listDeliveries: ['reads', (store) => store.listDeliveries(1, 10)],
  acknowledgeDeliveries: ['writes', (store) => store.acknowledgeDeliveries(1, [{ ...leadRef, revision: 1 }])],
  setAsideDeliveries: [
    'writes',
    (store) => store.setAsideDeliveries(1, [{ ...leadRef, revision: 1, reason: 'ANY', retryAt: null }], NOW),
  ],
  returnDeferredDeliveries: ['reads', (store) => store.returnDeferredDeliveries(1, NOW)],
  takeBackDeliveries: ['writes', (store) => store.takeBackDeliveries(1, [leadRef])],
  listDeliveriesSetAside: ['reads', (store) => store.listDeliveriesSetAside(1, null, 10)],
  measureDeliveries: ['reads', (store) => store.measureDeliveries(1, 10)],
  findEpoch: ['reads', (store) => store.findEpoch()],
  raiseEpoch: ['writes', (store) => store.raiseEpoch(NOW, NOW, BY)],
  eraseLead: ['writes', (store) => store.eraseLead({ ...leadRef, memberId: null, now: NOW })],
  deleteLeads: ['writes', (store) => store.deleteLeads(STUDIO_ID, 10, BY)],
  deleteErasedLeads: ['writes', (store) => store.deleteErasedLeads(STUDIO_ID, [lead.id], NOW)],
  walkUnerasedLeads: ['reads', (store) => store.walkUnerasedLeads(STUDIO_ID, null, 10)],
  walkErasedLeads: ['reads', (store) => store.walkErasedLeads(STUDIO_ID, null, 10)],
  findRetentionTime: ['reads', (store) => store.findRetentionTime()],
  putRetentionTime: ['writes', (store) => store.putRetentionTime(null, NOW)],
  createApiKey: ['writes', (store) => store.createApiKey(anApiKey(), NOW)],
  listLiveApiKeys: ['reads', (store) => store.listLiveApiKeys(STUDIO_ID)],
  listFormerApiKeys: ['reads', (store) => store.listFormerApiKeys(STUDIO_ID, null, 10)],
  replaceApiKey: ['writes', (store) => store.replaceApiKey(aReplacement(key))],
  revokeApiKey: ['writes', (store) => store.revokeApiKey(STUDIO_ID, key.id, BY)],
  putApiKeyQuota: ['writes', (store) => store.putApiKeyQuota(STUDIO_ID, key.id, 50, BY)],
  recordApiKeyUse: ['writes', (store) => store.recordApiKeyUse({ ...keyRef, now: NOW, unlessSince: NOW })],
  findCredential: ['reads', (store) => store.findCredential(key.secretSha256)],
  putStudio: ['writes', (store) => store.putStudio(aStudio({ status: 'suspended' }), BY)],
  endStudio: ['writes', (store) => store.endStudio(STUDIO_ID, BY)],
  findStudio: ['reads', (store) => store.findStudio(STUDIO_ID)],
  listStudios: ['reads', (store) => store.listStudios(null, 10)],
  putMember: ['writes', (store) => store.putMember(aMember({ role: 'staff' }), BY)],
  findMember: ['reads', (store) => store.findMember(STUDIO_ID, 'member-1')],
  removeMember: ['writes', (store) => store.removeMember(STUDIO_ID, 'member-1', BY)],
  putLeadSource: ['writes', (store) => store.putLeadSource(aLeadSource(), BY)],
  removeLeadSource: ['writes', (store) => store.removeLeadSource(STUDIO_ID, source.id, BY)],
  findLeadSource: ['reads', (store) => store.findLeadSource(STUDIO_ID, source.id)],
  listLeadSources: ['reads', (store) => store.listLeadSources(STUDIO_ID, null, 10)],
  recordAct: ['writes', (store) => store.recordAct(STUDIO_ID, { action: 'leads-resent' }, BY)],
  walkAuditEvents: ['reads', (store) => store.walkAuditEvents({ start: NOW, end: NOW }, null)],
  listAuditEvents: ['reads', (store) => store.listAuditEvents(STUDIO_ID, null)],
  recordRequests: ['writes', (store) => store.recordRequests([aLoggedRequest()])],
  listRequests: ['reads', (store) => store.listRequests(STUDIO_ID, null, 10)],
  removeRequests: ['writes', (store) => store.removeRequests(STUDIO_ID)],
};

const named = Object.entries(CALLS).map(([name, [kind, call]]) => ({ name, kind, call }));
export const READS = named.filter(({ kind }) => kind === 'reads');
export const WRITES = named.filter(({ kind }) => kind === 'writes');

/** Creates a lead unrelated to any other. */
export function createAnother(store: Store) {
  const another = aLead();
  return store.createLead(another, keysFor(another));
}
