import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from '../../proto/gen/health/v1/health_pb.ts';
import { CORE_TOKEN, startTestCore, type TestCore } from '../support/grpc.ts';
import { describeIf, hasCommand } from '../support/servers.ts';

describe('watching the health of a core', () => {
  /** Watches over real gRPC; gives the statuses as they come. */
  function watch(core: TestCore, service = '') {
    const client = new Client(`127.0.0.1:${core.port}`, credentials.createInsecure());
    onTestFinished(() => client.close());
    const call = client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      (request) => Buffer.from(toBinary(HealthCheckRequestSchema, request)),
      (bytes) => fromBinary(HealthCheckResponseSchema, bytes).status,
      create(HealthCheckRequestSchema, { service }),
    );
    call.on('error', () => {});
    return { call, next: async () => (await once(call, 'data'))[0] as Status };
  }

  test('tells at once that it serves, and that it stops before it does', async () => {
    const core = await startTestCore({ SHUTDOWN_DRAIN_MS: '500' });
    const { call, next } = watch(core);
    expect(await next()).toBe(Status.SERVING);

    const ended = once(call, 'end');
    const [status] = await Promise.all([next(), core.stop()]);

    expect(status).toBe(Status.NOT_SERVING);
    await ended;
  });

  test('goes on for a service that nobody knows', async () => {
    const core = await startTestCore();
    const { next } = watch(core, 'no.such.Service');
    expect(await next()).toBe(Status.SERVICE_UNKNOWN);
    // Whoever watches does not keep it from stopping.
    await core.stop();
  });
});

describeIf(hasCommand('grpcurl'), 'reflection, with grpcurl', 'install grpcurl', () => {
  let core: TestCore;
  let silent: TestCore;
  beforeAll(async () => {
    core = await startTestCore({ CORE_REFLECTION: 'yes' });
    silent = await startTestCore();
  });
  afterAll(() => Promise.all([core.stop(), silent.stop()]));

  /** What grpcurl prints when it knows nothing but the address and the token. */
  async function grpcurl(target: TestCore, ...args: string[]): Promise<string> {
    const options = ['-plaintext', '-H', `authorization: Bearer ${CORE_TOKEN}`];
    const data = args[0]?.startsWith('{') ? ['-d', args.shift() as string] : [];
    const command = [...options, ...data, `127.0.0.1:${target.port}`, ...args];
    return promisify(execFile)('grpcurl', command).then(
      ({ stdout }) => stdout,
      ({ stdout, stderr }) => `${stdout}${stderr}`,
    );
  }

  test('tells every service', async () => {
    expect((await grpcurl(core, 'list')).trim().split('\n')).toEqual([
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'leadintake.v1.ApiKeyService',
      'leadintake.v1.AuditService',
      'leadintake.v1.DirectoryService',
      'leadintake.v1.LeadIntakeService',
    ]);
  });

  test('describes services, methods and messages', async () => {
    expect(await grpcurl(core, 'describe', 'leadintake.v1.LeadIntakeService')).toContain('rpc CreateLead');
    expect(await grpcurl(core, 'describe', 'leadintake.v1.LeadIntakeService.BatchGetLeads')).toContain('stream');
    expect(await grpcurl(core, 'describe', 'leadintake.v1.Lead')).toContain('create_time');
    expect(await grpcurl(core, 'describe', 'leadintake.v1.Nothing')).toMatch(/not found|there is no/i);
  });

  test('is enough to call, and to read why a call is refused', async () => {
    const studio = '{"studio": {"id": "s1", "status": "STUDIO_STATUS_ACTIVE"}}';
    expect(JSON.parse(await grpcurl(core, studio, 'leadintake.v1.DirectoryService/PutStudio'))).toEqual({
      studio: { id: 's1', status: 'STUDIO_STATUS_ACTIVE' },
    });
    const refused = await grpcurl(core, '{"studioId": "s2"}', 'leadintake.v1.DirectoryService/GetStudio');
    expect(refused).toMatch(/Code: NotFound[\s\S]*google.rpc.ErrorInfo[\s\S]*"reason": "STUDIO_NOT_FOUND"/);
  });

  test('is not there unless it is asked for', async () => {
    expect(await grpcurl(silent, 'list')).toMatch(/does not support the reflection API/);
  });
});
