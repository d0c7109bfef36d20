import { onTestFinished } from 'vitest';
import type { Running } from '../../common/run-until-stopped.ts';
import type { Environment } from '../../common/settings.ts';
import { startGateway } from '../../gateway/app.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { CORE_TOKEN } from '../support/grpc.ts';
import { PUBLIC_URL } from '../support/service.ts';

/** Starts a gateway of a core for the current test, with a quota that no test reaches. */
export async function aGateway(coreUrl: string, env: Environment = {}): Promise<Running> {
  const gateway = await startGateway(
    readGatewayConfig({
      CORE_TOKEN,
      CORE_URL: coreUrl,
      GATEWAY_PORT: '0',
      LOG_LEVEL: 'silent',
      PUBLIC_URL,
      QUOTA_LIMIT: '1000000',
      SHUTDOWN_DRAIN_MS: '0',
      ...env,
    }),
  );
  onTestFinished(() => gateway.stop());
  return gateway;
}
