/**
 * Asks the core on this machine whether it serves; status 0 when it does. For a container's health check; a core with TLS
 * is better asked from outside.
 */
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../proto/gen/health/v1/health_pb.ts';
import { readCoreConfig } from './config.ts';

const baseUrl = `http://127.0.0.1:${readCoreConfig(process.env).CORE_PORT}`;
const health = createClient(Health, createGrpcTransport({ baseUrl }));
const isServing = await health.check({}, { timeoutMs: 2000 }).then(
  ({ status }) => status === Status.SERVING,
  () => false,
);
process.exit(isServing ? 0 : 1);
