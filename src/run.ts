import { createLogger } from '../common/logger.ts';
import { isSupervisor, startProcesses } from '../common/process-supervisor.ts';
import { runUntilStopped } from '../common/run-until-stopped.ts';
import { startCore } from './app.ts';
import { readCoreConfig } from './config.ts';

await runUntilStopped(async () => {
  const config = readCoreConfig(process.env);
  const { CORE_PROCESSES: count, CORE_METRICS_ADDRESS: metricsAddress, SHUTDOWN_DRAIN_MS: drainMs } = config;
  if (!isSupervisor(count)) return startCore(config);
  return startProcesses({ count, metricsAddress, drainMs, log: await createLogger('core', config.LOG_LEVEL) });
});
