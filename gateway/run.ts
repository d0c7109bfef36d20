import { createLogger } from '../common/logger.ts';
import { isSupervisor, startProcesses } from '../common/process-supervisor.ts';
import { runUntilStopped } from '../common/run-until-stopped.ts';
import { startGateway } from './app.ts';
import { readGatewayConfig } from './config.ts';

await runUntilStopped(async () => {
  const config = readGatewayConfig(process.env);
  const { GATEWAY_PROCESSES: count, GATEWAY_METRICS_ADDRESS: metricsAddress, SHUTDOWN_DRAIN_MS: drainMs } = config;
  if (!isSupervisor(count)) return startGateway(config);
  return startProcesses({ count, metricsAddress, drainMs, log: await createLogger('gateway', config.LOG_LEVEL) });
});
