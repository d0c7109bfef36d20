import { DatabaseSync } from 'node:sqlite';
import { beforeEach, expect, test } from 'vitest';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { retentionObserver } from '../../src/rpc/log.ts';
import { createCoreMetrics } from '../../src/rpc/metrics.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import { DAY_MS, NOW } from '../support/builders.ts';
import { type CoreClients, connectToCore } from '../support/core-clients.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';

const id = 'studio';

let core: TestCore;
let operator: CoreClients;

beforeEach(async () => {
  core = await startTestCore();
  operator = connectToCore(core.url, CORE_TOKEN);
  await operator.directory.putStudio({ studio: { id, status: StudioStatus.ACTIVE } });
  return async () => {
    operator.close();
    await core.stop();
  };
});

test.each([
  [5, NOW.getTime()],
  [30, 2 ** 62],
])('an unreadable retention suspends its studio until it is put again: %s days since %s', async (days, since) => {
  await operator.directory.putStudio({ studio: { id, retentionDays: 3650 } });
  {
    using database = new DatabaseSync(core.path, { timeout: 100_000 });
    database.prepare('UPDATE studios SET retention = ? WHERE id = ?').run(`{"days":${days},"since":${since}}`, id);
  }
  const { studio } = await operator.directory.getStudio({ studioId: id });
  expect([studio?.status, studio?.retentionDays]).toEqual([StudioStatus.SUSPENDED, undefined]);
  await operator.directory.putStudio({ studio: { id }, updateMask: { paths: ['retention_days'] } });
  expect((await operator.directory.getStudio({ studioId: id })).studio).toMatchObject({
    status: StudioStatus.ACTIVE,
  });
});

test('retention counts and logs what it erases, and reports the lag of its time', async () => {
  const lines: object[] = [];
  const log = { info: (line: object) => lines.push(line), warn: (line: object) => lines.push(line) };
  const { registry, ...metrics } = createCoreMetrics();
  const observer = retentionObserver(log as never, { registry, ...metrics });
  const lag = async () => /^lead_intake_core_retention_lag_seconds (\S+)$/m.exec(await registry.metrics())?.[1];
  expect(await lag()).toBe('Nan');
  observer.time(new Date(Date.now() - DAY_MS));
  expect(Number(await lag())).toBeGreaterThanOrEqual(86_400);
  observer.processed('erased', 3);
  observer.processed('unreadable', 2);
  observer.erased(id, 3);
  for (const _ of [1, 2]) observer.failed(new StoreUnavailable('away'));
  expect(await registry.metrics()).toMatch(
    /_retention_leads_total\{outcome="erased"\} 3\n.*outcome="unreadable"\} 2\n/,
  );
  expect(lines).toEqual([{ studioId: id, leads: 3 }, { err: expect.any(StoreUnavailable) }]);
  observer.time(null);
  expect(await lag()).toBe('Nan');
});
