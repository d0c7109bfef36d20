import { createHash } from 'node:crypto';
import type { Contact } from '../../src/domain/contact.ts';
import type { LeadChange } from '../../src/domain/lead-change.ts';
import type { Store } from '../../src/store/store.ts';
import { findLeads } from '../../src/usecases/read-leads.ts';
import { changesIn, keysIn } from '../contract/store-actions.ts';

/** The data that a database was created with. */
export interface Made {
  readonly studioIds: readonly string[];
  readonly leads: readonly MadeLead[];
  readonly secrets: readonly string[];
}

/** A lead as requested, and the id that was returned. */
export interface MadeLead {
  readonly studioId: string;
  readonly idempotencyKey: string;
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId?: string | undefined;
  readonly note?: string | undefined;
  readonly id: string;
}

/** Returns everything that a store returns about that data, as JSON. */
export async function collectAnswers(
  store: Store,
  { studioIds, leads, secrets }: Made,
): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const id of studioIds) {
    answers[`studio ${id}`] = await store.findStudio(id);
    answers[`leads of ${id}`] = (await store.listLeads(id, null, 100)).records;
    answers[`erased leads of ${id}`] = (await store.walkErasedLeads(id, null, 100)).leads;
    answers[`keys of ${id}`] = await keysIn(store, id);
    answers[`sources of ${id}`] = (await store.listLeadSources(id, null, 100)).records;
    answers[`events of ${id}`] = await store.listAuditEvents(id, null);
    answers[`requests of ${id}`] = (await store.listRequests(id, null, 100)).records;
  }
  for (const { studioId, id, idempotencyKey, contact } of leads) {
    answers[`lead ${id}`] = await store.findLead(studioId, id);
    answers[`created with ${idempotencyKey}`] = await store.findLeadByIdempotencyKey(studioId, idempotencyKey);
    answers[`events of ${id}`] = await store.listAuditEvents(studioId, id);
    const found = await findLeads({ store }, { studioId, contact, pageSize: 0, pageToken: '' });
    answers[`found in ${studioId} by ${contact.value}`] = found.leads.map((lead) => lead.id);
  }
  for (const secret of secrets) {
    const hash = createHash('sha256').update(secret).digest();
    answers[`opened by ${secret}`] = await store.findCredential(hash);
  }
  answers.changes = byLead(await changesIn(store));
  for (const consumer of await store.listConsumers()) {
    const { number, name } = consumer;
    answers[`consumer ${name}`] = consumer;
    answers[`waiting for ${name}`] = byLead((await store.listDeliveries(number, 100))?.changes ?? []);
    answers[`set aside by ${name}`] = await store.listDeliveriesSetAside(number, null, 100);
  }
  answers.epoch = await store.findEpoch();
  answers.retention = (await store.findRetentionTime())?.time;
  return JSON.parse(JSON.stringify(answers));
}

/** Changes at the same time have no defined order. */
const byLead = (changes: readonly LeadChange[]) => changes.toSorted((a, b) => (a.lead.id < b.lead.id ? -1 : 1));
