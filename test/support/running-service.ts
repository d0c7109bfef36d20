import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import type { GatewayDeadlines } from '../../gateway/port/gateway-server.ts';
import { startCore } from '../../src/app.ts';
import { readCoreConfig } from '../../src/config.ts';
import { connectToCore } from './core-clients.ts';
import { PUBLIC_URL } from './documented.ts';

/** The token of the tests' cores. */
export const CORE_TOKEN = 'the token of the tests of the service';

/** Settings that differ from those that tests use by default. */
export interface ServiceOverrides {
  readonly core?: Record<string, string>;
  readonly gateway?: Record<string, string>;
  /** Deadlines, which have no settings. */
  readonly deadlines?: Partial<GatewayDeadlines>;
}

/** Settings of both processes. */
const COMMON = { CORE_TOKEN, LOG_LEVEL: 'silent', SHUTDOWN_DRAIN_MS: '0' };

export function startGatewayAt(coreUrl: string, { gateway = {}, deadlines }: ServiceOverrides) {
  const defaults = { ...COMMON, GATEWAY_PORT: '0', CORE_URL: coreUrl, PUBLIC_URL, QUOTA_LIMIT: '1000000' };
  return startGateway(readGatewayConfig({ ...defaults, ...gateway }), deadlines);
}

/** Runs a core and a gateway in this process over sockets, on a temporary database. The caller must dispose of them. */
export async function runService(overrides: ServiceOverrides = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'lead-intake-test-'));
  const coreEnv = { ...COMMON, DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`, ...overrides.core };
  let core = await startCore(readCoreConfig({ CORE_PORT: '0', ...coreEnv }));
  const coreUrl = core.url;
  const gateway = await startGatewayAt(coreUrl, overrides);
  const clients = connectToCore(coreUrl, CORE_TOKEN);
  return {
    url: gateway.url,
    coreUrl,
    clients,
    gatewayMetricsUrl: gateway.metricsUrl,
    /** Returns the core that runs or ran last. */
    core: () => core,

    stopCore: () => core.stop(),

    async startCore(overrides: Record<string, string> = {}) {
      core = await startCore(readCoreConfig({ CORE_PORT: new URL(coreUrl).port, ...coreEnv, ...overrides }));
    },

    async dispose() {
      clients.close();
      await gateway.stop();
      await core.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
