/**
 * Asks the core on this machine whether it serves; status 0 when it does. For a container's health check; a core with TLS
 * is better asked from outside.
 */
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { readSettings } from '../common/settings.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../proto/gen/health/v1/health_pb.ts';
import { coreSettings } from './config.ts';

// Nothing else of them: a file that cannot be used now is no fault of a core that holds to what it said before.
const { CORE_PORT } = readSettings({ CORE_PORT: coreSettings.CORE_PORT }, process.env);
const baseUrl = `http://127.0.0.1:${CORE_PORT}`;
const health = createClient(Health, createGrpcTransport({ baseUrl }));
const isServing = await health.check({}, { timeoutMs: 2000 }).then(
  ({ status }) => status === Status.SERVING,
  () => false,
);
process.exit(isServing ? 0 : 1);
