import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { MAX_APPLIED_REQUESTS } from '../../src/domain/audit.ts';
import type { Lead } from '../../src/domain/lead.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aSecretHash,
  aStudio,
  BY,
  keysFor,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { aReplacement, correctLead, describeThroughStores, moveLead } from './store-actions.ts';

/** The promises about changes that their callers retry. */
export function repeatedChangesContract(opened: () => OpenedStore): void {
  // @proves crashes-19
  describeThroughStores('retried changes, ', opened, (through) => {
    let first: Store;
    let second: Store;
    beforeEach(async () => {
      [first, second] = [through(0), through(1)];
      await first.putStudio(aStudio(), BY);
    });

    test.each(EVERY_RIVALRY.filter(({ isRepeatable }) => isRepeatable))(
      'a retried change takes effect once: $method, $title',
      async ({ arrange, change, rival, state }) => {
        const requestId = randomUUID();
        await arrange?.(first);
        await change(first, requestId);
        await rival(second);
        const [after, events] = [await state(second), await second.listAuditEvents(STUDIO_ID, null)];

        await change(second, requestId);
        await change(first, requestId);

        expect(await state(first)).toEqual(after);
        expect(await first.listAuditEvents(STUDIO_ID, null)).toEqual(events);
        await change(first, randomUUID());
        expect(await state(second)).not.toEqual(after);
      },
    );

    test('a retried change returns the current state', async () => {
      const [lead, requestId] = [aLead(), randomUUID()];
      await first.createLead(lead, keysFor(lead));
      await moveLead(first, lead, 'contacted', { requestId });
      const won = await moveLead(second, lead, 'won');
      expect(await moveLead(second, lead, 'contacted', { requestId })).toEqual(won);

      await first.putStudio(aStudio({ quotaLimit: 5 }), { ...BY, requestId: randomUUID() });
      const put = () => first.putStudio(aStudio({ status: 'suspended' }), { ...BY, requestId });
      await put();
      const active = await second.putStudio(aStudio({ quotaLimit: 7 }), BY);
      expect(await put()).toEqual(active);
    });

    test('a retried change takes effect later if it was rejected first', async () => {
      const [lead, requestId] = [aLead(), randomUUID()];
      await first.createLead(lead, keysFor(lead));
      const correct = (store: Store) =>
        correctLead(store, lead, { note: 'one' }, { requestId, expectedUpdatedAt: lead.updatedAt });
      await moveLead(second, lead, 'won');
      expect(await correct(first)).toEqual({ kind: 'stale' });
      expect(await first.isLeadChangeApplied(STUDIO_ID, lead.id, requestId)).toBe(false);
      const change = { requestId, expectedUpdatedAt: null };
      expect(await correctLead(second, lead, { note: 'one' }, change)).toMatchObject({ kind: 'changed' });
      expect(await first.isLeadChangeApplied(STUDIO_ID, lead.id, requestId)).toBe(true);
    });

    test('a change that is sent 20 times at once takes effect once', async () => {
      const requestId = randomUUID();
      await Promise.all(
        times(20, (index) => through(index).putStudio(aStudio({ status: 'suspended' }), { ...BY, requestId })),
      );
      const events = await first.listAuditEvents(STUDIO_ID, null);
      expect(events.filter(({ to }) => to === 'suspended')).toHaveLength(1);
    });

    test('a retried change is recognised after as many other changes as the bound allows', async () => {
      const requestId = randomUUID();
      await first.putMember(aMember(), { ...BY, requestId });
      for (let left = MAX_APPLIED_REQUESTS - 1; left > 0; left -= 20) {
        const others = times(Math.min(left, 20), (index) => through(index).putMember(aMember({ role: 'staff' }), BY));
        await Promise.all(others);
      }

      await second.putMember(aMember(), { ...BY, requestId });

      expect(await first.findMember(STUDIO_ID, 'member-1')).toEqual(aMember({ role: 'staff' }));
    });
  });
}

/** A change, and a later one by somebody else, which a retry of the first must not undo. */
export interface RivalChanges {
  readonly title: string;
  /** Writes the data that the change needs. */
  arrange?(store: Store): Promise<unknown>;
  /** @param requestId undefined if the caller will not retry the change */
  change(store: Store, requestId?: string): Promise<unknown>;
  rival(store: Store): Promise<unknown>;
  /** Returns the state that both of them change, without times. */
  state(store: Store): Promise<unknown>;
  /** Whether a caller can give the change an identity. */
  readonly isRepeatable: boolean;
  /** Whether the change has no effect. */
  readonly changesNothing?: boolean;
}

const LATER = plus(NOW, 60_000);
const RIVAL = { memberId: 'member-2', now: LATER };

const suspended = aStudio({ status: 'suspended' });
const studioStatus = async (store: Store) => (await store.findStudio(STUDIO_ID))?.status;

const member = (store: Store) => store.findMember(STUDIO_ID, 'rival');
const aRival = aMember({ id: 'rival', role: 'admin' });

const source = aLeadSource();
const storedSource = (store: Store) => store.findLeadSource(STUDIO_ID, source.id);

const lead: Lead = aLead();
const createLead = (store: Store) => store.createLead(lead, keysFor(lead));
const current = async (store: Store) => (await store.findLead(STUDIO_ID, lead.id)) as Lead;
const stage = async (store: Store) => (await current(store)).stage;
const moved = async (store: Store, to: Lead['stage'], by: object = {}) => moveLead(store, lead, to, by);

const key = anApiKey();
const createKey = (store: Store) => store.createApiKey(key, NOW);
const storedKey = async (store: Store) => {
  const former = await store.listFormerApiKeys(STUDIO_ID, null, 1);
  return [...(await store.listLiveApiKeys(STUDIO_ID)), ...former.records].find(({ id }) => id === key.id);
};
const [firstSecret, rivalSecret] = [aSecretHash(), aSecretHash()];

/** Every method of the port whose retry could undo something. Each case starts with an active studio. */
const RIVAL_CHANGES = {
  putStudio: [
    {
      title: 'an activated studio that somebody else suspends stays suspended',
      isRepeatable: true,
      arrange: (store) => store.putStudio(suspended, BY),
      change: (store, requestId) => store.putStudio(aStudio(), { ...BY, requestId }),
      rival: (store) => store.putStudio(suspended, RIVAL),
      state: studioStatus,
    },
    {
      title: 'a put that changed nothing does not take effect later',
      changesNothing: true,
      isRepeatable: true,
      change: (store, requestId) => store.putStudio(aStudio(), { ...BY, requestId }),
      rival: (store) => store.putStudio(suspended, RIVAL),
      state: studioStatus,
    },
  ],
  putMember: [
    {
      title: 'a member that somebody else removes stays removed',
      isRepeatable: true,
      change: (store, requestId) => store.putMember(aRival, { ...BY, requestId }),
      rival: (store) => store.removeMember(STUDIO_ID, 'rival', RIVAL),
      state: member,
    },
  ],
  removeMember: [
    {
      title: 'a removed member that somebody else puts back remains',
      isRepeatable: true,
      arrange: (store) => store.putMember(aRival, BY),
      change: (store, requestId) => store.removeMember(STUDIO_ID, 'rival', { ...BY, requestId }),
      rival: (store) => store.putMember(aRival, RIVAL),
      state: member,
    },
  ],
  putLeadSource: [
    {
      title: 'a source that somebody else disables stays disabled',
      isRepeatable: true,
      change: (store, requestId) => store.putLeadSource(source, { ...BY, requestId }),
      rival: (store) => store.putLeadSource({ ...source, enabled: false }, RIVAL),
      state: storedSource,
    },
  ],
  removeLeadSource: [
    {
      title: 'a removed source that somebody else puts back remains',
      isRepeatable: true,
      arrange: (store) => store.putLeadSource(source, BY),
      change: (store, requestId) => store.removeLeadSource(STUDIO_ID, source.id, { ...BY, requestId }),
      rival: (store) => store.putLeadSource(source, RIVAL),
      state: storedSource,
    },
  ],
  changeLeadStage: [
    {
      title: 'a moved lead that somebody else closes stays closed',
      isRepeatable: true,
      arrange: createLead,
      change: (store, requestId) => moved(store, 'contacted', { requestId }),
      rival: (store) => moved(store, 'won', RIVAL),
      state: stage,
    },
  ],
  updateLead: [
    {
      title: 'a corrected note that somebody else corrects again keeps that text',
      isRepeatable: true,
      arrange: createLead,
      change: (store, requestId) => correctLead(store, lead, { note: 'one' }, { requestId }),
      rival: async (store) => correctLead(store, await current(store), { note: 'one, and two' }, RIVAL),
      state: async (store) => (await current(store)).note,
    },
  ],
  createApiKey: [
    {
      title: 'a new key that somebody else revokes stays revoked',
      isRepeatable: false,
      change: createKey,
      rival: (store) => store.revokeApiKey(STUDIO_ID, key.id, RIVAL),
      state: async (store) => (await storedKey(store))?.revokedAt,
    },
  ],
  replaceApiKey: [
    {
      title: 'a secret that somebody else replaces stays replaced',
      isRepeatable: false,
      arrange: createKey,
      change: (store) => store.replaceApiKey(aReplacement(key, { secretSha256: firstSecret })),
      rival: (store) => store.replaceApiKey(aReplacement(key, { secretSha256: rivalSecret, now: LATER })),
      state: async (store) => (await storedKey(store))?.secretSha256,
    },
  ],
  putApiKeyQuota: [
    {
      title: 'a quota that somebody else changes stays changed',
      isRepeatable: true,
      arrange: createKey,
      change: (store, requestId) => store.putApiKeyQuota(STUDIO_ID, key.id, 50, { ...BY, requestId }),
      rival: (store) => store.putApiKeyQuota(STUDIO_ID, key.id, 60, RIVAL),
      state: async (store) => (await storedKey(store))?.quotaLimit,
    },
  ],
} as const satisfies Record<Exclude<keyof Store, Reads | keyof Harmless>, readonly RivalChanges[]>;

/** The other writing methods, and why a retry of each undoes nothing. */
interface Harmless {
  createLead: 'its idempotency key finds the lead, whatever became of it, or the enquiry';
  resendLeads: 'consumers get the leads once more';
  distributeLeadChanges: 'consumers get the leads once more';
  createConsumer: 'the list of consumers knows the call';
  removeConsumer: 'it names the number';
  removeOrphans: 'no consumer gets the number of another';
  putBackfills: 'it names what it replaces';
  acknowledgeDeliveries: 'it names the revision';
  setAsideDeliveries: 'it names the revision, and a delivery that is set aside already stays so';
  returnDeferredDeliveries: 'the consumer gets the leads once more';
  takeBackDeliveries: 'the consumer gets the leads once more';
  recordAct: 'it only adds';
  raiseEpoch: 'the database knows the call';
  eraseLead: 'no one can restore a lead';
  endStudio: 'no one can put it again';
  putRetentionTime: 'it names the version';
  deleteErasedLeads: 'it names leads that are erased, and no one can restore one';
  deleteLeads: 'no one needs the leads of a test studio';
  revokeApiKey: 'no one can restore a key';
  recordApiKeyUse: 'the later time stays';
  recordRequests: 'each is recorded once';
  removeRequests: 'it names what is kept';
}

/** The methods that write nothing. */
type Reads = `${'find' | 'list' | 'walk' | 'measure' | 'is' | 'presence'}${string}` | 'check' | 'close';

export const EVERY_RIVALRY = Object.entries<readonly RivalChanges[]>(RIVAL_CHANGES).flatMap(([method, rivalries]) =>
  rivalries.map((rivalry) => ({ method, ...rivalry })),
);
