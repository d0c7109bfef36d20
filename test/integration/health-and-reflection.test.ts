import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, status as grpcStatus, Metadata, type ServiceError } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type HealthCheckRequest,
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from '../../proto/gen/health/v1/health_pb.ts';
import { MAX_UNAUTHENTICATED_WATCHERS } from '../../src/rpc/health-service.ts';
import { times } from '../support/builders.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';
import { describeIf, hasCommand } from '../tools/servers.ts';

/** A client with its own connection. */
function makeClient(port: number): Client {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  onTestFinished(() => client.close());
  return client;
}

const asBytes = (request: HealthCheckRequest) => Buffer.from(toBinary(HealthCheckRequestSchema, request));
const statusIn = (bytes: Buffer) => fromBinary(HealthCheckResponseSchema, bytes).status;

/** Calls Check over gRPC, by default without a token. */
function check(client: Client, token = ''): Promise<Status | undefined> {
  const metadata = new Metadata();
  if (token) metadata.set('authorization', `Bearer ${token}`);
  const request = create(HealthCheckRequestSchema);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest('/grpc.health.v1.Health/Check', asBytes, statusIn, request, metadata, (error, status) =>
      error ? reject(error) : resolve(status),
    );
  });
}

/** Calls Watch over gRPC; returns the statuses as they arrive. */
function watch({ port }: Pick<TestCore, 'port'>, { service = '', token = '', client = makeClient(port) } = {}) {
  const metadata = new Metadata();
  if (token) metadata.set('authorization', `Bearer ${token}`);
  const request = create(HealthCheckRequestSchema, { service });
  const call = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', asBytes, statusIn, request, metadata);
  const failed = once(call, 'error').then(([error]) => (error as ServiceError).code);
  return { call, failed, next: async () => (await once(call, 'data'))[0] as Status };
}

describe('watching the health of a core', () => {
  test("watching a core's health reports SERVING at once, and NOT_SERVING before it stops", async () => {
    const core = await startTestCore({ SHUTDOWN_DRAIN_MS: '500' });
    const { call, next } = watch(core);
    expect(await next()).toBe(Status.SERVING);

    const ended = once(call, 'end');
    const status = next();
    const client = makeClient(core.port);
    expect(await check(client)).toBe(Status.SERVING);
    const stopped = core.stop();
    // Regardless of the last readiness check.
    expect(await check(client)).toBe(Status.NOT_SERVING);

    expect(await status).toBe(Status.NOT_SERVING);
    await Promise.all([stopped, ended]);
  });

  // @proves bounds-60
  test('the number of health watchers is limited without a token and unlimited with one', async () => {
    const core = await startTestCore();
    onTestFinished(() => core.stop());
    const watchers = times(MAX_UNAUTHENTICATED_WATCHERS, () => watch(core));
    expect(await Promise.all(watchers.map(({ next }) => next()))).toEqual(watchers.map(() => Status.SERVING));

    const findOutcome = ({ next, failed }: ReturnType<typeof watch>) => Promise.race([next(), failed]);
    expect(await findOutcome(watch(core))).toBe(grpcStatus.RESOURCE_EXHAUSTED);
    expect(await watch(core, { token: CORE_TOKEN }).next()).toBe(Status.SERVING);
    expect(await check(makeClient(core.port))).toBe(Status.SERVING);

    watchers[0]?.call.cancel();
    await expect
      .poll(() => {
        const another = watch(core);
        return Promise.race([another.next(), another.failed.then(() => undefined)]);
      })
      .toBe(Status.SERVING);
  });
});

test('health checks work without a token or with the right one, but not with a wrong one', async () => {
  const core = await startTestCore();
  onTestFinished(() => core.stop());
  const client = makeClient(core.port);
  expect(await check(client)).toBe(Status.SERVING);
  await expect(check(client, 'another')).rejects.toMatchObject({ code: grpcStatus.UNAUTHENTICATED });
  expect(await watch(core, { token: 'another', client }).failed).toBe(grpcStatus.UNAUTHENTICATED);
  expect(await check(client, CORE_TOKEN)).toBe(Status.SERVING);
  // Even on a connection that has presented the right token.
  await expect(check(client, 'another')).rejects.toMatchObject({ code: grpcStatus.UNAUTHENTICATED });
});

describeIf(hasCommand('grpcurl'), 'reflection, with grpcurl', 'install grpcurl', () => {
  let core: TestCore;
  let silent: TestCore;
  beforeAll(async () => {
    core = await startTestCore({ CORE_REFLECTION: 'yes' });
    silent = await startTestCore();
  });
  afterAll(() => Promise.all([core.stop(), silent.stop()]));

  /** Returns the output of grpcurl, given only the address and the token. */
  async function grpcurl(target: TestCore, ...args: string[]): Promise<string> {
    const options = ['-plaintext', '-H', `authorization: Bearer ${CORE_TOKEN}`];
    const data = args[0]?.startsWith('{') ? ['-d', args.shift() as string] : [];
    const command = [...options, ...data, `127.0.0.1:${target.port}`, ...args];
    return promisify(execFile)('grpcurl', command).then(
      ({ stdout }) => stdout,
      ({ stdout, stderr }) => `${stdout}${stderr}`,
    );
  }

  test('reflection lists every service', async () => {
    expect((await grpcurl(core, 'list')).trim().split('\n')).toEqual([
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'leadintake.v1.ApiKeyService',
      'leadintake.v1.AuditService',
      'leadintake.v1.ConsumerService',
      'leadintake.v1.DirectoryService',
      'leadintake.v1.ExchangeService',
      'leadintake.v1.LeadIntakeService',
      'leadintake.v1.RequestLogService',
    ]);
  });

  test('reflection is enough to make calls and to decode refusals', async () => {
    const studio = '{"studio": {"id": "s1", "status": "STUDIO_STATUS_ACTIVE"}}';
    expect(JSON.parse(await grpcurl(core, studio, 'leadintake.v1.DirectoryService/PutStudio'))).toEqual({
      studio: { id: 's1', status: 'STUDIO_STATUS_ACTIVE', keepEnquiries: true },
    });
    const refused = await grpcurl(core, '{"studioId": "s2"}', 'leadintake.v1.DirectoryService/GetStudio');
    expect(refused).toMatch(/Code: NotFound[\s\S]*google.rpc.ErrorInfo[\s\S]*"reason": "STUDIO_NOT_FOUND"/);
  });

  test('reflection is disabled by default', async () => {
    expect(await grpcurl(silent, 'list')).toMatch(/does not support the reflection API/);
  });
});
