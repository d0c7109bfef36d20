import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Lead } from '../../src/domain/lead.ts';
import type { ChangeKind, LeadChange } from '../../src/domain/lead-change.ts';
import type { Store } from '../../src/store/store.ts';
import { aConsumer, aLead, aStudio, BY, claimsOf, plus, STUDIO_ID, times } from '../support/builders.ts';
import { patiently } from '../support/patience.ts';
import { sizeOf } from '../tools/size-of.ts';
import type { OpenedStore } from './opened-store.ts';
import {
  acknowledgementOf,
  correctLead,
  describeThroughStores,
  distributeOnePartACall,
  moveLead,
} from './store-actions.ts';

/** More leads than a call distributes in one part. */
const BACKLOG = 600;
const ROUNDS = sizeOf('DELIVERY_ROUNDS', { usual: 25, soak: 1000 });
const ALL = 500;

const below = (bound: number) => Math.floor(Math.random() * bound);

/** A change of a lead, by the time that it was given. */
interface Change {
  readonly leadId: string;
  readonly kind: ChangeKind;
  readonly time: Date;
}

/** A named consumer is told one value with one version of a lead, which is read at one moment and acknowledged by that version. */
export function deliveriesContract(opened: () => OpenedStore): void {
  // @proves feed-8 feed-13
  describe('what a named consumer is told', () => {
    beforeEach(async () => {
      await opened().store.putStudio(aStudio({ keepEnquiries: true }), BY);
    });

    async function consumer(name: string): Promise<number> {
      const outcome = await opened().store.createConsumer(aConsumer({ name }), BY);
      return outcome.kind === 'created' ? outcome.consumer.number : expect.fail(outcome.kind);
    }

    /** Records what consumers are told. */
    function listener() {
      const contents = new Map<string, unknown>();
      const heard = new Map<string, Date>();
      return {
        hear(number: number, { lead, revision, kinds }: LeadChange): void {
          const version = `${number} ${lead.id} ${revision}`;
          const content = JSON.parse(JSON.stringify({ lead, kinds }));
          if (contents.has(version))
            expect(content, 'an equal revision has an equal content').toEqual(contents.get(version));
          contents.set(version, content);
          for (const { kind, time } of kinds) {
            const last = heard.get(`${number} ${lead.id} ${kind}`);
            if (!last || last < time) heard.set(`${number} ${lead.id} ${kind}`, time);
          }
        },
        /** Returns the changes that a consumer was not told of. */
        missedBy: (number: number, changes: readonly Change[]) =>
          changes.filter(
            ({ leadId, kind, time }) => !((heard.get(`${number} ${leadId} ${kind}`)?.getTime() ?? 0) >= time.getTime()),
          ),
      };
    }

    /** Lists and acknowledges until nothing waits. */
    async function drain(
      store: Store,
      number: number,
      hear: (number: number, change: LeadChange) => void,
    ): Promise<void> {
      await store.takeBackDeliveries(number, await store.listDeliveriesSetAside(number, null, 500));
      for (;;) {
        const { changes = [], isComplete = true } = (await store.listDeliveries(number, 200)) ?? {};
        for (const change of changes) hear(number, change);
        await store.acknowledgeDeliveries(number, changes.map(acknowledgementOf));
        if (changes.length === 0 && isComplete) return;
      }
    }

    describeThroughStores('', opened, (through) => {
      test('has each kind of change, and an equal revision always has an equal content', async () => {
        const [relay, reporting] = [await consumer('relay'), await consumer('reporting')];
        const { hear, missedBy } = listener();
        const changes: Change[] = [];
        const leads = times(3, () => aLead());
        let clock = Math.max(...leads.map(({ createdAt }) => createdAt.getTime()));
        const now = () => {
          clock += 1 + below(3);
          return new Date(clock);
        };
        for (const lead of leads) await through(0).createLead(lead, claimsOf(lead));
        const isEnquired = async (lead: Lead, store: Store, time: Date) => {
          const note = `at ${time.getTime()}`;
          const again = aLead({ contact: lead.contact, note, createdAt: time, updatedAt: time });
          return (await store.createLead(again, claimsOf(again), { keepsEnquiry: true })).kind === 'already-open';
        };
        const acts: readonly (readonly [ChangeKind, (lead: Lead, store: Store, time: Date) => Promise<boolean>])[] = [
          [
            'updated',
            async (lead, store, time) =>
              (await correctLead(store, lead, { note: `${time.getTime()}` }, { now: time })).kind === 'updated',
          ],
          ['enquired', isEnquired],
          ['enquired', isEnquired],
          [
            'stage-changed',
            async (lead, store, time) =>
              (await moveLead(store, lead, below(2) === 0 ? 'contacted' : 'trial_booked', { now: time })).kind ===
              'changed',
          ],
        ];
        let isOver = false;
        const poll = async (number: number, store: Store) => {
          while (!isOver) {
            const { changes: told = [] } = (await store.listDeliveries(number, 200)) ?? {};
            for (const change of told) hear(number, change);
            if (below(2) === 0) await sleep(below(4));
            const named = told.map(acknowledgementOf);
            if (below(5) > 0) await store.acknowledgeDeliveries(number, named);
            else
              await store.setAsideDeliveries(
                number,
                named.map((each) => ({ ...each, reason: 'LATER', retryAt: null })),
                now(),
              );
            if (below(5) === 0) await store.takeBackDeliveries(number, named);
            if (below(10) === 0) {
              const leadIds = [leads[below(leads.length)]?.id ?? ''];
              await store.resendLeads({ studioId: STUDIO_ID, leadIds }, now(), { consumer: number });
            }
          }
        };
        // One writer a lead: the times of its changes ascend.
        const write = async (lead: Lead, store: Store) => {
          for (let round = 0; round < ROUNDS; round += 1) {
            const [kind, act] = acts[below(acts.length)] as (typeof acts)[number];
            const time = now();
            if (await act(lead, store, time)) changes.push({ leadId: lead.id, kind, time });
            await sleep(below(3));
          }
        };
        const writing = leads.map((lead, index) => write(lead, through(index)));
        const written = Promise.all(writing).finally(() => {
          isOver = true;
        });
        await Promise.all([written, poll(relay, through(0)), poll(relay, through(1)), poll(reporting, through(1))]);

        for (const number of [relay, reporting]) {
          await drain(through(number), number, hear);
          expect(missedBy(number, changes)).toEqual([]);
        }
      });
    });

    test('has the kind of a change that a poll does not reach behind a backlog', async () => {
      const { store, makeLeads } = opened();
      const number = await consumer('relay');
      const { hear, missedBy } = listener();
      const first = aLead();
      await store.createLead(first, claimsOf(first));
      await store.listDeliveries(number, ALL);
      await makeLeads(...times(BACKLOG, (index) => aLead({ createdAt: plus(first.createdAt, 1 + index) })));
      const time = plus(first.createdAt, 1e6);
      await moveLead(store, first, 'contacted', { now: time });
      const isOver = distributeOnePartACall();
      const { changes = [] } = (await patiently(() => store.listDeliveries(number, ALL))) ?? {};
      isOver();
      for (const change of changes) hear(number, change);
      await store.acknowledgeDeliveries(number, changes.map(acknowledgementOf));

      await drain(store, number, hear);
      expect(missedBy(number, [{ leadId: first.id, kind: 'stage-changed', time }])).toEqual([]);
    });

    test('is sent again at a new revision, which no earlier acknowledgement settles', async () => {
      const { store } = opened();
      const [relay, reporting] = [await consumer('relay'), await consumer('reporting')];
      const lead = aLead();
      await store.createLead(lead, claimsOf(lead));
      const list = async (number: number) => (await store.listDeliveries(number, ALL))?.changes ?? [];
      const [before, others] = [await list(relay), await list(reporting)];
      const resend = () =>
        store.resendLeads({ studioId: STUDIO_ID, leadIds: [lead.id] }, plus(lead.createdAt, 1000), { consumer: relay });
      await resend();

      await store.acknowledgeDeliveries(relay, before.map(acknowledgementOf));
      const [sent = expect.fail('it was not sent')] = await list(relay);
      expect(sent.revision).toBeGreaterThan(before[0]?.revision ?? Number.NaN);
      expect(sent.kinds.map(({ kind }) => kind)).toEqual(['resent']);
      expect(await store.acknowledgeDeliveries(relay, before.map(acknowledgementOf))).toMatchObject({ superseded: 1 });
      await store.acknowledgeDeliveries(relay, [acknowledgementOf(sent)]);
      expect(await list(relay)).toEqual([]);
      // The other one is told of no resend, and what it was told before settles the change.
      expect((await list(reporting)).map(({ kinds }) => kinds)).toEqual(others.map(({ kinds }) => kinds));
      await store.acknowledgeDeliveries(reporting, (await list(reporting)).map(acknowledgementOf));
      expect(await list(reporting)).toEqual([]);
    });
  });
}
