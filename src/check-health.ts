/**
 * Checks the health of the core on this machine; exits with status 0 if it serves, else prints why not. For a container's health
 * check. A core with mutual TLS requires a certificate here, too: the one that a gateway's settings name.
 */
import { readFileSync } from 'node:fs';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { errorSummary } from '../common/error-summary.ts';
import { localHost, readSetting } from '../common/settings.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../proto/gen/health/v1/health_pb.ts';
import { coreSettings } from './config.ts';

// Only these settings: a running core keeps the previous contents of a callers file that is invalid now.
const CORE_HOST = readSetting('CORE_HOST', coreSettings.CORE_HOST, process.env);
const CORE_PORT = readSetting('CORE_PORT', coreSettings.CORE_PORT, process.env);
const { CORE_TLS_CERT_FILE = '', CORE_CLIENT_CERT_FILE = '', CORE_CLIENT_KEY_FILE = '' } = process.env;
const baseUrl = `http${CORE_TLS_CERT_FILE && 's'}://${localHost(`${CORE_HOST}`)}:${CORE_PORT}`;

/** Returns why the core does not serve; undefined: it serves. */
async function reason(): Promise<string | undefined> {
  const nodeOptions = {
    // Its certificate has the name by which others reach it, and nothing secret is sent.
    rejectUnauthorized: false,
    ...(CORE_CLIENT_CERT_FILE && {
      cert: readFileSync(CORE_CLIENT_CERT_FILE),
      key: readFileSync(CORE_CLIENT_KEY_FILE),
    }),
  };
  const health = createClient(Health, createGrpcTransport({ baseUrl, nodeOptions }));
  const { status } = await health.check({}, { timeoutMs: 2000 });
  return status === Status.SERVING ? undefined : 'it does not serve: its log says why';
}

const why = await reason().catch(errorSummary);
if (why !== undefined) console.error(`the core at ${baseUrl}: ${why}`);
process.exit(why === undefined ? 0 : 1);
