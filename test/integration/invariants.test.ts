import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Writable } from 'node:stream';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { assert, brokenInvariants, type Invariant } from '../../common/invariants.ts';
import { requestCounter } from '../../gateway/admission/count-quota.ts';
import { createGatewayMetrics } from '../../gateway/observation.ts';
import { RequestState } from '../../gateway/request.ts';
import { ProblemAnswers } from '../../gateway/socket/problem-json.ts';
import { systemClock } from '../../src/domain/new-id.ts';
import { callRunner, createCoreMetrics } from '../../src/rpc/observation.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead } from '../support/builders.ts';
import { aCreateLeadRequest, type GrpcCaller, refusalOf } from '../support/grpc.ts';
import { createKey, type KeyOfStudio } from '../support/grpc-studios.ts';
import { aCoreOn } from './a-core.ts';

/** What no line of a log may contain. */
const NAME = 'Ada Canary';
const EMAIL = 'ada@canary.example';

/** Log lines, as text. */
const lines: string[] = [];
const log = pino(new Writable({ write: (line, _, done) => done(void lines.push(String(line))) }));

/** A core in this process, whose store and clock a test can break. */
let path: string;
let real: Store;
let caller: GrpcCaller;
let key: KeyOfStudio;
let broken: Partial<Store> = {};
let now = systemClock;
const metrics = createCoreMetrics();
let stop: () => Promise<void>;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  path = join(folder, 'leads.db');
  real = openSqliteStore(path);
  const store = new Proxy(real, { get: (_, name: keyof Store) => broken[name] ?? real[name] });
  const core = await aCoreOn(store, callRunner(log, metrics), () => now());
  caller = core.caller;
  stop = async () => {
    core.close();
    await core.stop();
    await real.close();
    rmSync(folder, { recursive: true });
  };
  key = await createKey(caller);
});
afterAll(() => stop());
afterEach(() => {
  broken = {};
  now = systemClock;
});

const studioId = () => key.owner.studioId;
const aRequest = () => aCreateLeadRequest(studioId(), { displayName: NAME });
const createdLead = async () =>
  (await caller.call<{ lead: { id: string } }>('LeadIntakeService/CreateLead', aRequest())).lead;
const leadOfAnother = () => aLead({ studioId: 'another', displayName: NAME });

/** Makes the file ignore a kind of write, as long as the work takes. */
async function ignoring<Result>(write: string, work: () => Promise<Result>): Promise<Result> {
  const file = new DatabaseSync(path, { timeout: 100_000 });
  file.exec(`CREATE TRIGGER ignored BEFORE ${write} ON leads BEGIN SELECT RAISE(IGNORE); END`);
  try {
    return await work();
  } finally {
    file.exec('DROP TRIGGER ignored');
    file.close();
  }
}

/** How the core relies on invariants, broken by its file, its store and its clock; rejects with what the caller of the item gets. */
const OF_CORE: Partial<Record<Invariant, () => Promise<unknown>>> = {
  creation_has_outcome: () => ignoring('INSERT', () => caller.call('LeadIntakeService/CreateLead', aRequest())),
  lead_of_studio: () => {
    broken = { listLeads: async () => ({ records: [leadOfAnother()], next: null, skipped: 0 }) };
    return caller.call('LeadIntakeService/ListLeads', { studioId: studioId() });
  },
  update_time_grows: async () => {
    const { id: leadId } = await createdLead();
    now = () => new Date(Number.NaN);
    return caller.call('LeadIntakeService/ChangeLeadStage', { studioId: studioId(), leadId, stage: 'LEAD_STAGE_WON' });
  },
};

/** The same of the gateway. */
const OF_GATEWAY: Partial<Record<Invariant, () => Promise<unknown>>> = {
  quota_left_not_negative: () => {
    const decision = { admitted: true, waitMs: 0, of: 'key', limit: 1, remaining: -1, resetSeconds: 1 } as const;
    const count = requestCounter({ consume: async () => decision } as never, {} as never);
    const bearer = { caller: { studioId: EMAIL, apiKeyId: NAME } } as never;
    return count(bearer, {} as never);
  },
};

const countOf = (name: Invariant) => brokenInvariants.get(name) ?? 0;
const countIn = (text: string, name: Invariant) =>
  Number(new RegExp(`^lead_intake_invariants_broken_total\\{invariant="${name}"\\} (\\d+)$`, 'm').exec(text)?.[1]);

/** One line of an error, with the name of the invariant and no data. */
function expectLogged(name: Invariant): void {
  const errors = lines.filter((line) => JSON.parse(line).level >= 50);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(`the invariant ${name} is broken`);
  for (const line of lines) expect(line).not.toMatch(new RegExp(`${NAME}|${EMAIL}|canary`, 'i'));
}

describe('a broken invariant fails the item that relies on it, is counted and logged once without data, and the next is served', () => {
  test.each(Object.entries(OF_CORE) as [Invariant, () => Promise<unknown>][])('in the core: %s', async (name, item) => {
    const before = countOf(name);
    lines.length = 0;
    expect(await refusalOf(item())).toEqual({ code: 'INTERNAL', message: 'internal error' });
    expect(countOf(name)).toBeGreaterThan(before);
    expect(countIn(await metrics.registry.metrics(), name)).toBe(countOf(name));
    expectLogged(name);
    [broken, now] = [{}, systemClock];
    expect(await createdLead()).toHaveProperty('id');
  });

  test.each(Object.entries(OF_GATEWAY) as [Invariant, () => Promise<unknown>][])(
    'in the gateway: %s',
    async (name, item) => {
      const before = countOf(name);
      lines.length = 0;
      const app = fastify({ loggerInstance: log });
      onTestFinished(() => app.close());
      app.addHook('onRequest', async (request) => {
        request.state = new RequestState();
      });
      new ProblemAnswers('https://leads.example', undefined).ofRequests(app as never);
      app.get('/broken', async () => item());
      app.get('/whole', async () => ({}));
      const { statusCode, payload } = await app.inject('/broken');
      expect(statusCode).toBe(500);
      expect(payload).toContain('internal_error');
      expect(payload).not.toContain(name);
      expect(countOf(name)).toBeGreaterThan(before);
      expect(countIn(await createGatewayMetrics().registry.metrics(), name)).toBe(countOf(name));
      expectLogged(name);
      expect((await app.inject('/whole')).statusCode).toBe(200);
    },
  );
});

test('what holds costs nothing', () => {
  const before = [...brokenInvariants.values()];
  assert(true, 'page_moves');
  expect([...brokenInvariants.values()]).toEqual(before);
});
