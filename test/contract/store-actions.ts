import { beforeEach, describe, expect, onTestFinished, vi } from 'vitest';
import { MAX_DISTRIBUTION_MS } from '../../common/deadlines.ts';
import type { ApiKey } from '../../src/domain/api-key.ts';
import { type Consumer, DEFAULT_CONSUMER, type NewConsumer } from '../../src/domain/consumer.ts';
import type { Lead, LeadStage } from '../../src/domain/lead.ts';
import type { Acknowledgement, LeadChange } from '../../src/domain/lead-change.ts';
import type { Correction } from '../../src/domain/lead-data.ts';
import type { Page } from '../../src/store/port/page.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aSecretHash, BY, keysFor, NOW, STUDIO_ID } from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';

export const OPEN_STAGES: readonly LeadStage[] = ['new', 'contacted', 'trial_booked', 'trial_attended'];
export const CLOSED_STAGES: readonly LeadStage[] = ['won', 'lost'];

/** Calls that most contract tests make on the store of the current test, with the usual expected outcome. */
export function actionsOn(store: () => Store) {
  return {
    async created(lead: Lead = aLead(), keys = keysFor(lead)): Promise<Lead> {
      expect(await store().createLead(lead, keys)).toEqual({ kind: 'created', lead });
      return lead;
    },
    async moved(lead: Lead, stage: LeadStage, overrides: Partial<StageChange> = {}): Promise<Lead> {
      const outcome = await moveLead(store(), lead, stage, overrides);
      if (outcome.kind !== 'changed') throw new Error(`the lead was not moved: ${outcome.kind}`);
      return outcome.lead;
    },
    async corrected(lead: Lead, correction: Correction, overrides: Partial<Update> = {}): Promise<Lead> {
      const outcome = await correctLead(store(), lead, correction, overrides);
      if (outcome.kind !== 'changed') throw new Error(`the lead was not corrected: ${outcome.kind}`);
      return outcome.lead;
    },
    /** Returns the revision of a lead whose changes no consumer has acknowledged. */
    findRevision: async (lead: Lead): Promise<number> => {
      const changes = await changesIn(store());
      return changes.find((change) => change.lead.id === lead.id)?.revision ?? expect.fail('no change of it waits');
    },
    everyLead: (studioId = STUDIO_ID) => leadsIn(store(), studioId, null, 1000),
  };
}

type StageChange = Parameters<Store['changeLeadStage']>[0];
type Update = Parameters<Store['updateLead']>[0];
type Replacement = Parameters<Store['replaceApiKey']>[0];

export const moveLead = (store: Store, lead: Lead, stage: LeadStage, overrides: Partial<StageChange> = {}) =>
  store.changeLeadStage({
    studioId: lead.studioId,
    leadId: lead.id,
    stage,
    keys: keysFor(lead),
    expectedUpdatedAt: null,
    memberId: null,
    now: NOW,
    ...overrides,
  });

export const correctLead = (store: Store, lead: Lead, correction: Correction, overrides: Partial<Update> = {}) =>
  store.updateLead({
    studioId: lead.studioId,
    leadId: lead.id,
    correction,
    keys: keysFor({ ...lead, ...correction }),
    expectedUpdatedAt: null,
    memberId: null,
    now: NOW,
    ...overrides,
  });

/** Replaces the secret of a key by a new one. */
export const aReplacement = (key: ApiKey, overrides: Partial<Replacement> = {}): Replacement => ({
  studioId: key.studioId,
  keyId: key.id,
  memberId: key.memberId,
  secretSha256: aSecretHash(),
  secretHint: 'wxyz',
  expiresAt: null,
  now: NOW,
  ...overrides,
});

/** Runs tests through two stores on the same data, which share no memory. */
export function describeThroughStores(
  title: string,
  opened: () => OpenedStore,
  tests: (through: (index: number) => Store) => void,
): void {
  describe(`${title}through two stores`, () => {
    let all: Store[];
    beforeEach(async () => {
      const { store, another } = opened();
      all = [store, await another()];
    });

    tests((index) => all[index % all.length] as Store);
  });
}

/** Returns the leads of a page, after checking that the same page of public leads has each of them. */
export async function leadsIn(store: Store, studioId: string, before: string | null, limit: number) {
  const { records, next } = await store.listLeads(studioId, before, limit);
  const page = await store.listPublicLeads(studioId, before, limit);
  expect([page.records.map((lead) => JSON.parse(lead)), page.next]).toEqual([records.map(toPublicForm), next]);
  return records;
}

/** Returns a lead as the public API shows it. */
export const toPublicForm = ({ id, displayName, stage, sourceId, note, createdAt, updatedAt }: Lead) => ({
  ...{ id, displayName, stage, sourceId, note },
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});

export const sourcesIn = async (store: Store, studioId: string) =>
  (await store.listLeadSources(studioId, null, 2000)).records;

/** Returns all keys of a studio, highest id first. */
export async function keysIn(store: Store, studioId: string): Promise<ApiKey[]> {
  const keys = [...(await store.listLiveApiKeys(studioId))];
  let before: string | null = null;
  do {
    const page: Page<ApiKey> = await store.listFormerApiKeys(studioId, before, 100);
    keys.push(...page.records);
    before = page.next;
  } while (before !== null);
  return keys.sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Creates a lead and expects success. */
export async function created(store: Store, lead: Lead): Promise<void> {
  expect(await store.createLead(lead, keysFor(lead))).toMatchObject({ kind: 'created' });
}

/** Creates a consumer and expects success. */
export async function createdConsumer(store: Store, overrides: Partial<NewConsumer> = {}): Promise<Consumer> {
  const outcome = await store.createConsumer(aConsumer(overrides), BY);
  return outcome.kind === 'created' ? outcome.consumer : expect.fail(outcome.kind);
}

export const toAcknowledgement = ({ lead: { studioId, id: leadId }, revision }: LeadChange): Acknowledgement => ({
  studioId,
  leadId,
  revision,
});

/** Returns the unacknowledged changes of the default consumer. */
export const changesIn = async (store: Store, limit = 1000): Promise<readonly LeadChange[]> =>
  (await store.listDeliveries(DEFAULT_CONSUMER.number, limit))?.changes ?? [];

/** Acknowledges changes for the default consumer. */
export const acknowledgeIn = (store: Store, changes: readonly LeadChange[]) =>
  store.acknowledgeDeliveries(DEFAULT_CONSUMER.number, changes.map(toAcknowledgement));

/**
 * Lets each call distribute only one part, until the test ends or the returned function is called: each time a distribution
 * reads the clock, the clock advances beyond the limit of the distribution.
 */
export function distributeOnePartACall(): () => void {
  const { now } = performance;
  let lateMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    // Reads by other code do not advance it, because the driver would give up on a server that seems so slow.
    if (new Error().stack?.includes('/distribution.ts:')) lateMs += 2 * MAX_DISTRIBUTION_MS;
    return now.call(performance) + lateMs;
  });
  onTestFinished(() => clock.mockRestore());
  return () => clock.mockRestore();
}
