import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { type Lead, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { arrangeStudio, type CoreClients } from '../support/core-clients.ts';
import { describeWithMongoServer } from '../support/mongodb.ts';
import { LEADS } from '../support/service.ts';
import { createChance, seedFrom } from '../tools/chance.ts';
import { run, temporaryFolder } from '../tools/processes.ts';
import { aMongoServer, connectClients, deployApart } from './deployment.ts';
import { ask, type Ledger, type SentRequest, startLoad } from './load.ts';

/** The seed of the requests. */
const SEED = seedFrom('BACKUP_SEED');

/** The minimum number of leads acknowledged before the backup, and of those requested after it. */
const ACKNOWLEDGED = 20;

/** The number of requests repeated concurrently. */
const AT_ONCE = 16;

/** A database that can be backed up and restored. */
interface BackedUp {
  readonly url: string;
  /** Makes a backup while the load writes. */
  backUp(): Promise<void>;
  /** Whether a backup itself records when it began. */
  readonly notesTime: boolean;
  /** Restores the backup. No process may use the database meanwhile. */
  restore(): Promise<void>;
}

const TITLE = 'made under load, has every lead acknowledged before it';

// @proves backups-1 feed-10 sqlite-5
test(`a backup of SQLite, ${TITLE}`, async () => {
  const folder = temporaryFolder();
  const [path, backup] = [join(folder, 'leads.db'), join(folder, 'backup.db')];
  const url = `sqlite:${path}`;
  await expectRestored({
    url,
    notesTime: true,
    backUp: async () => void (await commandLine(url, 'backup', backup)),
    async restore() {
      for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
      copyFileSync(backup, path);
    },
  });
});

describeWithMongoServer('on FerretDB', () => {
  // @proves backups-1 feed-10
  test(`a backup of its PostgreSQL, ${TITLE}`, async () => {
    const { server, databaseUrl } = await aMongoServer();
    await expectRestored({ url: databaseUrl, notesTime: false, backUp: server.backUp, restore: server.restore });
  });
});

async function expectRestored({ url, notesTime, backUp, restore }: BackedUp): Promise<void> {
  const deployment = await deployApart({ DATABASE_URL: url });
  const { gatewayUrl } = deployment;
  const core = connectClients(deployment);
  const other = await arrangeStudio(core);
  await core.consumers.createConsumer({ consumer: { name: 'crm', allStudios: true }, start: ConsumerStart.NOW });
  const copies = ['', 'crm'].map((consumer): Copy => ({ consumer, epoch: 0n, leads: new Map() }));

  const load = await startLoad(gatewayUrl, core, createChance(SEED));
  onTestFinished(async () => void (await load.stop()));
  const { ledger } = load;
  const acknowledgedSince = async (start: number) => {
    const those = () => acknowledgedIn(ledger, ledger.requests.slice(start));
    await vi.waitUntil(() => those().length >= ACKNOWLEDGED, { timeout: 100_000 });
    return those();
  };
  const before = await acknowledgedSince(0);
  const closedBefore = [...ledger.closed];
  const begunAt = Date.now();
  await backUp();
  const countAtEnd = ledger.requests.length;
  await acknowledgedSince(countAtEnd);
  await load.stop();
  const after = acknowledgedIn(ledger, ledger.requests.slice(countAtEnd));
  await core.apiKeys.revokeApiKey(other);
  const [erased] = before as [Acknowledged];
  await core.leads.eraseLead({ studioId: ledger.studio.studioId, leadId: erased.id });
  for (const copy of copies) await follow(core, copy);
  const journal = join(temporaryFolder(), 'erasures.ndjson');
  writeFileSync(journal, await commandLine(url, 'erasures', 'export'));
  for (const copy of copies) expect(await readState(core, ledger)).toEqual(listLeads(copy, ledger));

  for (const part of ['gateway', 'core']) {
    deployment.process(part).child.kill('SIGTERM');
    expect(await deployment.process(part).ended(), part).toBe(0);
  }
  await restore();
  expect(JSON.parse(await commandLine(url, '--json', 'erasures', 'apply', journal))).toEqual({
    erased: 1,
    alreadyErased: 0,
    notFound: 0,
    skipped: 0,
  });
  const to = notesTime ? [] : ['--to', new Date(begunAt).toISOString()];
  const { restoredTo } = JSON.parse(await commandLine(url, '--json', 'restored', ...to));
  expect(Date.parse(restoredTo)).toBeGreaterThanOrEqual(begunAt - 300_000);
  expect(Date.parse(restoredTo)).toBeLessThan(begunAt);
  await deployment.restart('core and gateway');
  await deployment.serves();

  // Every lead acknowledged before the backup is stored: repeating its request returns the same response.
  const kept = before.filter(({ id }) => id !== erased.id);
  await forEach(kept, async ({ request, text }) => {
    expect(await ask(gatewayUrl, ledger.studio.secret, request)).toEqual({ status: 201, code: undefined, text });
  });
  const restored = await readState(core, ledger);
  const stages = new Map(restored.map(({ id, stage }) => [id, stage]));
  for (const id of closedBefore) if (id !== erased.id) expect(stages.get(id), `${id} was closed`).toBe(LeadStage.WON);
  const repeated = await ask(gatewayUrl, ledger.studio.secret, erased.request);
  expect(repeated).toMatchObject({ status: 409, code: 'integration_idempotency_conflict' });

  // Each request has the acknowledged lead or none; a request sent after the backup has none.
  const answers = ledger.requests.flatMap((request) => request.answers);
  const acknowledged = new Set(answers.map((answer) => answer?.status === 201 && JSON.parse(answer.text).lead.id));
  expect(restored.filter(({ id }) => !acknowledged.has(id))).toEqual([]);
  expect(after.filter(({ id }) => stages.has(id))).toEqual([]);

  // The copies of consumers that follow the guide become equal to the restored database.
  for (const copy of copies) {
    const had = copy.leads.size;
    await follow(core, copy);
    expect(listLeads(copy, ledger)).toEqual(restored);
    expect(copy.leads.size).toBeLessThan(had);
  }

  // A caller that repeats a request from after the backup gets a new lead, with another id.
  await forEach(after, async ({ request, id }) => {
    const read = await fetch(`${gatewayUrl}${LEADS}/${id}`, { headers: authorization(ledger.studio.secret) });
    expect(read.status).toBe(404);
    const answer = await ask(gatewayUrl, ledger.studio.secret, request);
    expect(answer?.status, answer?.text).toBe(201);
    expect(JSON.parse(answer?.text ?? '').lead.id).not.toBe(id);
  });
  // A key revoked after the backup grants access to its studio again.
  const opened = await fetch(`${gatewayUrl}${LEADS}`, { headers: authorization(other.secret) });
  expect(opened.status).toBe(200);
}

/** A request whose response was its own lead. */
interface Acknowledged {
  readonly request: SentRequest;
  readonly id: string;
  readonly text: string;
}

/** The requests that were answered with a lead and share neither key nor contact with another request. */
function acknowledgedIn(ledger: Ledger, requests: readonly SentRequest[]): Acknowledged[] {
  const ofKey = Map.groupBy(ledger.requests, ({ key }) => key);
  return requests.flatMap((request) => {
    const text = request.answers.find((answer) => answer?.status === 201)?.text;
    const isAlone = ofKey.get(request.key)?.length === 1 && request.contact.startsWith(request.key);
    return text !== undefined && isAlone ? { request, text, id: JSON.parse(text).lead.id } : [];
  });
}

/** The state that a consumer of the change feed stores. */
interface Copy {
  readonly consumer: string;
  epoch: bigint;
  /** Each lead with the time of its first arrival. */
  readonly leads: Map<string, { readonly lead: Lead; readonly revision: bigint; readonly cameAt: number }>;
}

/** Pulls and acknowledges all pending changes; expects each state to be newer than the one before. */
async function follow(core: CoreClients, copy: Copy): Promise<void> {
  const { consumer } = copy;
  for (;;) {
    const { changes, databaseEpoch, restoredToTime } = await core.leads.pullLeadChanges({ max: 100, consumer });
    if (databaseEpoch > copy.epoch) await forget(core, copy, restoredToTime ? timestampMs(restoredToTime) : 0);
    copy.epoch = databaseEpoch;
    if (changes.length === 0) return;
    for (const { lead, revision } of changes) {
      if (!lead) continue;
      const known = copy.leads.get(lead.id);
      expect(revision).toBeGreaterThan(known?.revision ?? -1n);
      copy.leads.set(lead.id, { lead, revision, cameAt: known?.cameAt ?? Date.now() });
    }
    await core.leads.acknowledgeLeadChanges({
      consumer,
      acknowledgements: changes.map(({ lead, revision }) => ({
        studioId: lead?.studioId ?? '',
        leadId: lead?.id ?? '',
        revision,
      })),
    });
  }
}

/** Deletes from a copy the leads that a restored database has lost. */
async function forget({ consumers }: CoreClients, { leads }: Copy, restoredTo: number): Promise<void> {
  const recent = [...leads.values()].filter(({ cameAt }) => cameAt >= restoredTo).map(({ lead }) => lead);
  for (const [studioId, ofStudio] of Map.groupBy(recent, (lead) => lead.studioId)) {
    for (let first = 0; first < ofStudio.length; first += 500) {
      const leadIds = ofStudio.slice(first, first + 500).map(({ id }) => id);
      for (const id of (await consumers.findMissingLeads({ studioId, leadIds })).missingLeadIds) leads.delete(id);
    }
  }
}

/** The leads in a copy that are not erased. */
function listLeads({ leads }: Copy, { studio }: Ledger): Lead[] {
  return [...leads.values()]
    .map(({ lead }) => lead)
    .filter(({ studioId, eraseTime }) => studioId === studio.studioId && eraseTime === undefined)
    .sort(byId);
}

/** Returns the leads of an export, including their enquiries, as changes do. */
async function readState(core: CoreClients, { studio: { studioId } }: Ledger): Promise<Lead[]> {
  const all: Lead[] = [];
  for await (const { leads } of core.leads.exportLeads({ studioId })) all.push(...leads);
  return all.sort(byId);
}

const byId = (a: Lead, b: Lead): number => (a.id < b.id ? -1 : 1);

const authorization = (secret: string) => ({ authorization: `Bearer ${secret}` });

/** Runs a command to completion and returns its output. */
async function commandLine(databaseUrl: string, ...args: string[]): Promise<string> {
  const running = run('operator/cli.ts', { args, env: { DATABASE_URL: databaseUrl } });
  expect(await running.ended(), running.output()).toBe(0);
  return running.output();
}

async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of waiting) await work(item);
    }),
  );
}
