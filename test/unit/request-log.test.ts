import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MAX_RECORDED_REQUESTS } from '../../common/rules/request-log.ts';
import type { RequestBatch } from '../../gateway/core/core-client.ts';
import { RequestLog } from '../../gateway/core/request-log.ts';
import { createGatewayMetrics } from '../../gateway/observation.ts';
import { AuthenticateApiKeyResponseSchema } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { LoggedRequest } from '../../proto/gen/leadintake/v1/request_log_pb.ts';
import type { Store } from '../../src/store/store.ts';
import { requestRecorder } from '../../src/usecases/request-log.ts';
import { aLoggedRequest, aStudio, NOW, times } from '../support/builders.ts';

const INTERVAL_MS = 500;
const MAX_PER_STUDIO = 50;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Returns the request log of a gateway whose core answers as the test says, and what was received, logged and counted. */
function aLog(answer: (batch: RequestBatch) => Promise<number> = async () => 0) {
  const batches: RequestBatch[] = [];
  const lines: string[] = [];
  const metrics = createGatewayMetrics();
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const recordRequests = (batch: RequestBatch) => {
    batches.push(structuredClone(batch));
    return answer(batch);
  };
  const requests = new RequestLog(recordRequests, log, metrics);
  onTestFinished(() => requests.close());
  return {
    batches,
    lines,
    requests,
    record(studioId: string, requestId = 'any') {
      const caller = create(AuthenticateApiKeyResponseSchema, { studioId });
      const key = { caller, studioId, secretHint: 'abcd', secretSha256: new Uint8Array(), requestId };
      requests.record({ requestId, operation: 'listLeads', status: 200, outcome: 'ok', durationMs: 1 }, key, []);
    },
    tick: (intervals = 1) => vi.advanceTimersByTimeAsync(intervals * INTERVAL_MS),
    sent: () => batches.flatMap((batch) => batch.requests as readonly LoggedRequest[]),
    async lost() {
      const text = await metrics.registry.metrics();
      return [...text.matchAll(/^lead_intake_gateway_requests_unrecorded_total\{.*\} (\d+)$/gm)].map(([, n]) =>
        Number(n),
      );
    },
  };
}

describe('the request log of a gateway', () => {
  // @proves requests-9 bounds-155
  test('the request log is bounded for each studio and for all, and reports omissions', async () => {
    const { record, tick, batches, sent, lost } = aLog();
    for (const _ of times(1000, () => 0)) record('flood');
    record('calm');
    await tick();
    expect(sent().map(({ studioId }) => studioId)).toEqual([...times(MAX_PER_STUDIO, () => 'flood'), 'calm']);
    expect(sent().map(({ omittedCount }) => omittedCount)).toEqual([...times(49, () => 0), 1000 - MAX_PER_STUDIO, 0]);
    expect(await lost()).toEqual([950, 0]);
    for (const index of times(2000, (each) => each)) record(`studio-${index % 1000}`);
    await tick();
    expect(batches.map(({ requests }) => requests.length)).toEqual([MAX_PER_STUDIO + 1, MAX_RECORDED_REQUESTS]);
    expect(await lost()).toEqual([950 + 1500, 0]);
    await tick(10);
    expect(batches).toHaveLength(2);
  });

  // @proves requests-9 bounds-155
  test('the request log has every studio up to its maximum, with the number of missing requests', async () => {
    for (const [floods, calm] of [
      [10, 1],
      [10, MAX_RECORDED_REQUESTS - 10],
      [300, 200],
      [1, MAX_RECORDED_REQUESTS - 1],
    ] as const) {
      const { record, tick, sent, lost } = aLog();
      const count = new Map<string, number>();
      const toRecord = (studioId: string) => {
        record(studioId);
        count.set(studioId, (count.get(studioId) ?? 0) + 1);
      };
      for (const index of times(1000, (each) => each)) toRecord(`flood-${index % floods}`);
      for (const index of times(calm, (each) => each)) toRecord(`calm-${index}`);
      toRecord('flood-0');
      await tick();
      const said = new Map<string, number>();
      for (const { studioId, omittedCount } of sent()) said.set(studioId, (said.get(studioId) ?? 0) + 1 + omittedCount);
      expect(said).toEqual(count);
      const total = 1000 + calm + 1;
      expect(await lost()).toEqual([total - sent().length, 0]);
      expect(sent()).toHaveLength(Math.min(MAX_RECORDED_REQUESTS, floods * MAX_PER_STUDIO + calm));
    }
  });

  // @proves requests-7 requests-1 bounds-155
  test('a batch is retried unchanged while its outcome is unknown, and the log stays bounded', async () => {
    const errors = [
      new ConnectError('no store', Code.Unavailable),
      new ConnectError('too late', Code.DeadlineExceeded),
      new ConnectError('cut off', Code.Internal, undefined, undefined, new Error('ECONNRESET')),
    ];
    const { record, tick, batches, lines, lost } = aLog(async () => {
      const error = errors.shift();
      if (error) throw error;
      return 2;
    });
    record('one', 'first');
    for (const index of times(3, (each) => each)) {
      await tick();
      for (const _ of times(MAX_RECORDED_REQUESTS, () => 0)) record(`studio-${index}`);
    }
    expect(batches).toHaveLength(3);
    await tick(2);
    const [first, ...again] = batches;
    expect(again.slice(0, 3)).toEqual([first, first, first]);
    expect(batches).toHaveLength(5);
    expect(batches[4]?.requests).toHaveLength(3 * MAX_PER_STUDIO);
    expect(await lost()).toEqual([3 * (MAX_RECORDED_REQUESTS - MAX_PER_STUDIO), 4]);
    expect(lines).toEqual([]);
  });

  // @proves requests-7
  test('a core without RecordRequests stops the log for a minute each time, logged once', async () => {
    let isOld = true;
    const { record, tick, batches, lines, lost, sent } = aLog(async () => {
      if (isOld) throw new ConnectError('unknown method', Code.Unimplemented);
      return 0;
    });
    for (const _ of times(3, () => 0)) {
      record('one');
      await tick();
      record('one');
      await tick(120);
    }
    expect(batches).toHaveLength(3);
    expect(await lost()).toEqual([0, 6]);
    expect(lines).toEqual([expect.stringContaining('requests are not recorded')]);
    isOld = false;
    record('one', 'recorded');
    await tick();
    expect(sent().at(-1)).toMatchObject({ requestId: 'recorded' });
  });

  // @proves requests-2
  test('closing the request log sends it once more without waiting longer for the core', async () => {
    const prompt = aLog();
    prompt.record('one');
    await prompt.requests.close();
    expect(prompt.sent()).toHaveLength(1);
    const silent = aLog(() => new Promise(() => {}));
    silent.record('one');
    await silent.requests.close();
    expect(silent.batches).toHaveLength(1);
  });
});

// @proves bounds-159
test('a core counts recorded requests of a bounded number of studios, and then starts anew', async () => {
  const trimmed: string[] = [];
  const store = {
    findStudio: async () => aStudio(),
    recordRequests: async () => {},
    removeRequests: async (studioId: string) => void trimmed.push(studioId),
  };
  const record = requestRecorder({ store: store as unknown as Store, clock: () => NOW });
  const { id: _, ...request } = aLoggedRequest();
  const send = (studioIds: readonly string[]) =>
    record(
      { batchId: randomUUID(), requests: studioIds.map((studioId) => ({ ...request, studioId, time: NOW })) },
      undefined,
    );
  const busy = (count: number) => send(times(count, () => 'busy'));
  await busy(99);
  await busy(1);
  expect(trimmed).toEqual(['busy']);
  await busy(99);
  for (const part of times(20, (index) => index)) await send(times(500, (index) => `studio-${part * 500 + index}`));
  await busy(99);
  expect(trimmed).toEqual(['busy']);
  await busy(1);
  expect(trimmed).toEqual(['busy', 'busy']);
});
