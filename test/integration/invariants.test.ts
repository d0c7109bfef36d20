import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Writable } from 'node:stream';
import { create } from '@bufbuild/protobuf';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { assert, brokenInvariants, type Invariant } from '../../common/invariants.ts';
import { requestCounter } from '../../gateway/admission/count-quota.ts';
import { problemOfError } from '../../gateway/core/core-problems.ts';
import { ExchangeBatcher } from '../../gateway/core/exchange-batcher.ts';
import type { Exchange } from '../../gateway/core/exchange-calls.ts';
import { createGatewayMetrics } from '../../gateway/observation.ts';
import { ProblemAnswers } from '../../gateway/port/problem-json.ts';
import { RequestState, senderToCheck } from '../../gateway/request.ts';
import { ExchangeResponseSchema } from '../../proto/gen/leadintake/v1/exchange_pb.ts';
import { countStates } from '../../src/domain/lead-change.ts';
import { newId, systemClock } from '../../src/domain/new-id.ts';
import { callerValues, readCaller } from '../../src/rpc/callers.ts';
import { createCoreMetrics } from '../../src/rpc/metrics.ts';
import { callRunner, newCall } from '../../src/rpc/run-call.ts';
import { KeyedMutex } from '../../src/store/mongo/apply-once.ts';
import { requestBatcher } from '../../src/store/mongo/collections.ts';
import { GroupCommit } from '../../src/store/sqlite/group-commit.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, times } from '../support/builders.ts';
import { aCreateLeadRequest, findRefusal, type GrpcCaller } from '../support/grpc.ts';
import { createKey, type KeyOfStudio } from '../support/grpc-studios.ts';
import { aCoreOn } from './a-core.ts';

/** Personal data that no log line may contain. */
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
const run = callRunner(log, metrics);
let stop: () => Promise<void>;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  path = join(folder, 'leads.db');
  real = openSqliteStore(path);
  const store = new Proxy(real, { get: (_, name: keyof Store) => broken[name] ?? real[name] });
  const core = await aCoreOn(store, run, () => now());
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

/** Runs work like a call that no RPC makes in this test. */
const asCall = (work: () => Promise<object>) =>
  run(newCall(undefined, new Headers(), undefined), work).catch(({ code, rawMessage }) =>
    Promise.reject({ code, details: rawMessage }),
  );

/** Makes the file ignore a kind of write while the work runs. */
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

/** By invariant: a call of the core that breaks it, and rejects with what its caller gets. */
const OF_CORE: Partial<Record<Invariant, () => Promise<unknown>>> = {
  acknowledged_at_most_named: () => {
    broken = { acknowledgeDeliveries: async (_, named) => countStates(named.length + 1, [], () => null) };
    return caller.call('LeadIntakeService/AcknowledgeLeadChanges', { acknowledgements: [] });
  },
  caller_of_admitted_call: () => asCall(async () => readCaller({ values: callerValues(undefined) })),
  creation_has_outcome: () => ignoring('INSERT', () => caller.call('LeadIntakeService/CreateLead', aRequest())),
  credential_of_secret: async () => {
    broken = { findCredential: () => real.findCredential(key.secretSha256) };
    return caller.call('ApiKeyService/AuthenticateApiKey', { secretSha256: Buffer.alloc(32, 1) });
  },
  enum_on_wire: () => {
    broken = { findLead: async (studioId) => aLead({ studioId, displayName: NAME, stage: EMAIL as never }) };
    return caller.call('LeadIntakeService/GetLead', { studioId: studioId(), leadId: newId() });
  },
  lead_of_studio: () => {
    broken = { listLeads: async () => ({ records: [leadOfAnother()], next: null, skipped: 0 }) };
    return caller.call('LeadIntakeService/ListLeads', { studioId: studioId() });
  },
  mutex_key_held_once: () => {
    const mutex = new KeyedMutex();
    const unseen = Object.assign([EMAIL], { flatMap: () => [] });
    const held = mutex.run([EMAIL], () => Promise.resolve({}));
    return asCall(() => mutex.run(unseen, () => held));
  },
  no_transaction_left_open: () => {
    const database = new DatabaseSync(':memory:');
    database.exec('BEGIN');
    return asCall(() => new GroupCommit(database).write(() => ({})));
  },
  one_row_by_number: async () => {
    const { id: leadId } = await createdLead();
    const move = { studioId: studioId(), leadId, stage: 'LEAD_STAGE_WON' };
    return ignoring('UPDATE', () => caller.call('LeadIntakeService/ChangeLeadStage', move));
  },
  page_moves: async () => {
    const page = { records: [aLead({ studioId: studioId(), displayName: NAME })], next: newId(), skipped: 0 };
    broken = { walkLeads: async () => page };
    await Array.fromAsync(caller.stream('LeadIntakeService/ExportLeads', { studioId: studioId() }));
  },
  page_within_limit: () => {
    const leads = times(3, () => aLead({ studioId: studioId(), displayName: NAME }));
    broken = { listLeads: async () => ({ records: leads, next: null, skipped: 0 }) };
    return caller.call('LeadIntakeService/ListLeads', { studioId: studioId(), pageSize: 2 });
  },
  result_per_item: () => {
    const batcher = requestBatcher<string, object>(async () => []);
    return asCall(() => batcher.submit(EMAIL, new AbortController().signal));
  },
  revision_grows: async () => {
    await createdLead();
    // One time is used up by the event.
    const times = [new Date()];
    now = () => times.pop() ?? new Date(Number.NaN);
    return caller.call('LeadIntakeService/ResendLeads', { studioId: studioId() });
  },
  update_time_grows: async () => {
    const { id: leadId } = await createdLead();
    now = () => new Date(Number.NaN);
    return caller.call('LeadIntakeService/ChangeLeadStage', { studioId: studioId(), leadId, stage: 'LEAD_STAGE_WON' });
  },
};

/** The same for the gateway. */
const OF_GATEWAY: Partial<Record<Invariant, () => Promise<unknown>>> = {
  key_check_in_order: async () => senderToCheck(new RequestState()),
  pending_not_negative: () => {
    const exchange: Exchange = async function* (messages) {
      for await (const _ of messages) yield create(ExchangeResponseSchema, { results: [{ index: 0 }] });
    };
    const batcher = new ExchangeBatcher(exchange, { timeoutMs: 5000 });
    const share = { group: EMAIL, weight: 1 };
    const answer = batcher.send({ requestId: NAME }, share);
    share.group = NAME;
    return answer.catch((error) => Promise.reject(problemOfError(error)));
  },
  quota_left_not_negative: () => {
    const decision = { admitted: true, waitMs: 0, owner: 'key', limit: 1, remaining: -1, resetSeconds: 1 } as const;
    const count = requestCounter({ consume: async () => decision } as never, {} as never);
    const bearer = { caller: { studioId: EMAIL, apiKeyId: NAME } } as never;
    return count(bearer, {} as never);
  },
};

const findCount = (name: Invariant) => brokenInvariants.get(name) ?? 0;
const countIn = (text: string, name: Invariant) =>
  Number(new RegExp(`^lead_intake_invariants_broken_total\\{invariant="${name}"\\} (\\d+)$`, 'm').exec(text)?.[1]);

/** Expects one error line with the name of the invariant and no data. */
function expectLogged(name: Invariant): void {
  const errors = lines.filter((line) => JSON.parse(line).level >= 50);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(`the invariant ${name} is broken`);
  for (const line of lines) expect(line).not.toMatch(new RegExp(`${NAME}|${EMAIL}|canary`, 'i'));
}

describe('a broken invariant', () => {
  test('every invariant is tested', () => {
    expect([...Object.keys(OF_CORE), ...Object.keys(OF_GATEWAY)].sort()).toEqual([...brokenInvariants.keys()].sort());
  });

  test.each(Object.entries(OF_CORE) as [Invariant, () => Promise<unknown>][])(
    'a broken invariant of the core fails only its item, counted and logged without data: %s',
    async (name, item) => {
      const before = findCount(name);
      lines.length = 0;
      expect(await findRefusal(item())).toEqual({ code: 'INTERNAL', message: 'internal error' });
      expect(findCount(name)).toBeGreaterThan(before);
      expect(countIn(await metrics.registry.metrics(), name)).toBe(findCount(name));
      expectLogged(name);
      [broken, now] = [{}, systemClock];
      expect(await createdLead()).toHaveProperty('id');
    },
  );

  test.each(Object.entries(OF_GATEWAY) as [Invariant, () => Promise<unknown>][])(
    'a broken invariant of the gateway fails only its request, logged without data: %s',
    async (name, item) => {
      const before = findCount(name);
      lines.length = 0;
      const app = fastify({ loggerInstance: log });
      onTestFinished(() => app.close());
      app.addHook('onRequest', async (request) => {
        request.state = new RequestState();
      });
      new ProblemAnswers('https://leads.example', undefined).setErrorHandlers(app as never);
      app.get('/broken', async () => item());
      app.get('/whole', async () => ({}));
      const { statusCode, payload } = await app.inject('/broken');
      expect(statusCode).toBe(500);
      expect(payload).toContain('internal_error');
      expect(payload).not.toContain(name);
      expect(findCount(name)).toBeGreaterThan(before);
      expect(countIn(await createGatewayMetrics().registry.metrics(), name)).toBe(findCount(name));
      expectLogged(name);
      expect((await app.inject('/whole')).statusCode).toBe(200);
    },
  );
});

test('an invariant that holds is not counted', () => {
  const before = [...brokenInvariants.values()];
  assert(true, 'page_moves');
  expect([...brokenInvariants.values()]).toEqual(before);
});
