/**
 * Checks the health of the core on this machine; exits with status 0 if it serves. For a container's health check. A
 * core with mutual TLS requires a certificate here, too: the one that a gateway's settings name.
 */
import { readFileSync } from 'node:fs';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { localHost, readSetting } from '../common/settings.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../proto/gen/health/v1/health_pb.ts';
import { coreSettings } from './config.ts';

// Only these settings: a running core keeps the previous contents of a callers file that is invalid now.
const CORE_HOST = readSetting('CORE_HOST', coreSettings.CORE_HOST, process.env);
const CORE_PORT = readSetting('CORE_PORT', coreSettings.CORE_PORT, process.env);
const { CORE_TLS_CERT_FILE = '', CORE_CLIENT_CERT_FILE = '', CORE_CLIENT_KEY_FILE = '' } = process.env;
const baseUrl = `http${CORE_TLS_CERT_FILE && 's'}://${localHost(`${CORE_HOST}`)}:${CORE_PORT}`;
const nodeOptions = {
  // Its certificate has the name by which others reach it, and nothing secret is sent.
  rejectUnauthorized: false,
  ...(CORE_CLIENT_CERT_FILE && { cert: readFileSync(CORE_CLIENT_CERT_FILE), key: readFileSync(CORE_CLIENT_KEY_FILE) }),
};
const health = createClient(Health, createGrpcTransport({ baseUrl, nodeOptions }));
const isServing = await health.check({}, { timeoutMs: 2000 }).then(
  ({ status }) => status === Status.SERVING,
  () => false,
);
process.exit(isServing ? 0 : 1);
