import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  ExportLeadsResponseSchema,
  type Lead,
  LeadChangeKind,
  LeadView,
  PullLeadChangesResponseSchema,
} from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { createCoreMetrics } from '../../src/rpc/metrics.ts';
import { callRunner } from '../../src/rpc/run-call.ts';
import { openStore } from '../../src/store/open-store.ts';
import { aLead, aStudio, BY, keysFor, STUDIO_ID as studioId, times } from '../support/builders.ts';
import { connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN } from '../support/grpc.ts';
import { temporaryFolder } from '../tools/processes.ts';
import { aCoreOn } from './a-core.ts';

async function aCore() {
  const store = await openStore(`sqlite:${join(temporaryFolder(), 'leads.db')}`);
  await store.putStudio(aStudio(), BY);
  const core = await aCoreOn(store, callRunner(pino({ level: 'silent' }), createCoreMetrics()));
  const clients = connectToCore(core.url, CORE_TOKEN);
  onTestFinished(async () => {
    await clients.close();
    core.close();
    await core.stop();
    await store.close();
  });
  return { store, ...clients };
}

const contact = { value: { case: 'email', value: 'ada@example.org' } } as const;
const refusal = expect.objectContaining({ message: expect.stringContaining('open lead') });

// @proves leads-32
describe('enquiries', () => {
  test('enquiries are only in a full GetLead, changes and exports, and imports make none', async () => {
    const { leads } = await aCore();
    const ask = (displayName: string, note?: string) =>
      leads.createLead({ studioId, idempotencyKey: randomUUID(), displayName, contact, ...(note && { note }) });
    const { lead } = await ask('Ada', 'first');
    const leadId = lead?.id ?? '';
    const of = { studioId, leadId };
    await expect(ask('Ada', 'second')).rejects.toEqual(refusal);
    await expect(ask('Augusta')).rejects.toEqual(refusal);
    const imported = { idempotencyKey: randomUUID(), displayName: 'Ada', contact, note: 'of a file' };
    const { results } = await leads.importLeads({ studioId, leads: [imported] });
    expect(results[0]?.outcome.case).toBe('error');

    const said = (found: Lead | undefined) =>
      found?.enquiries.map(({ displayName, note, sourceId }) => [displayName, note, sourceId]);
    const all = [
      ['Ada', 'second', undefined],
      ['Augusta', undefined, undefined],
    ];
    expect(said((await leads.getLead({ ...of, view: LeadView.FULL })).lead)).toEqual(all);
    for await (const { leads: exported } of leads.exportLeads({ studioId })) expect(exported.map(said)).toEqual([all]);
    const { changes } = await leads.pullLeadChanges({});
    expect(changes.map((change) => said(change.lead))).toEqual([all]);
    expect(changes[0]?.kinds.map(({ kind }) => kind)).toEqual([LeadChangeKind.CREATED, LeadChangeKind.ENQUIRED]);
    const others = [
      (await leads.getLead({ ...of, view: LeadView.BASIC })).lead,
      ...(await leads.listLeads({ studioId, view: LeadView.FULL })).leads,
      ...(await leads.findLeads({ studioId, contact })).leads,
      (await leads.updateLead({ studioId, lead: { id: leadId, note: 'corrected', enquiries: [{ note: 'forged' }] } }))
        .lead,
    ];
    expect(others.map(said)).toEqual(others.map(() => []));
    expect(said((await leads.getLead({ ...of, view: LeadView.FULL })).lead)).toEqual(all);
    await leads.eraseLead(of);
    expect(said((await leads.pullLeadChanges({})).changes[0]?.lead)).toEqual([]);
  });

  // @proves bounds-83
  test('messages of leads with many enquiries have fewer leads, and no lead is missing', async () => {
    const { store, leads } = await aCore();
    const ids: string[] = [];
    for (const lead of times(50, () => aLead())) {
      await store.createLead(lead, keysFor(lead));
      for (const index of times(4, (each) => each)) {
        const again = aLead({ contact: lead.contact, note: `${index}${'\u{1f600}'.repeat(1990)}` });
        await store.createLead(again, keysFor(again), { keepsEnquiry: true });
      }
      ids.push(lead.id);
    }
    const idsIn = (sent: readonly { readonly lead?: Lead | undefined }[]) => sent.map(({ lead }) => lead?.id);
    const [least, most] = [1024 ** 2 / 2, 2 * 1024 ** 2];

    const messages = await Array.fromAsync(leads.exportLeads({ studioId }));
    expect(messages.flatMap(({ leads: each }) => each.map(({ id }) => id))).toEqual(ids);
    const sizes = messages.map((each) => toBinary(ExportLeadsResponseSchema, each).length);
    expect(sizes.length).toBeGreaterThan(1);
    for (const size of sizes) expect(size).toBeLessThan(most);
    expect(sizes[0]).toBeGreaterThan(least);
    const [first] = messages;
    const rest = await Array.fromAsync(leads.exportLeads({ studioId, resumeToken: first?.resumeToken ?? '' }));
    expect(rest.flatMap(({ leads: each }) => each.map(({ id }) => id))).toEqual(ids.slice(first?.leads.length));

    const watched: (string | undefined)[] = [];
    for await (const { changes } of leads.watchLeadChanges({})) {
      expect(
        toBinary(PullLeadChangesResponseSchema, create(PullLeadChangesResponseSchema, { changes })).length,
      ).toBeLessThan(most);
      watched.push(...idsIn(changes));
      if (watched.length === ids.length) break;
    }
    expect(watched.toSorted()).toEqual(ids.toSorted());
    const pulled: (string | undefined)[] = [];
    for (;;) {
      const response = await leads.pullLeadChanges({ max: 100 });
      if (response.changes.length === 0) break;
      expect(toBinary(PullLeadChangesResponseSchema, response).length).toBeLessThan(most);
      pulled.push(...idsIn(response.changes));
      await leads.acknowledgeLeadChanges({
        acknowledgements: response.changes.map(({ lead, revision }) => ({
          studioId,
          leadId: lead?.id ?? '',
          revision,
        })),
      });
    }
    expect(pulled.toSorted()).toEqual(ids.toSorted());
  });
});
