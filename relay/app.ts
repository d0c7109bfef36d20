import { CoreToken, tlsToCore } from '../common/core-connection.ts';
import { createLogger, logSettings } from '../common/logger.ts';
import { serveMetrics } from '../common/metrics.ts';
import type { Running } from '../common/run-until-stopped.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import { watchFiles } from '../common/watched-files.ts';
import { type RelayConfig, relaySummary } from './config.ts';
import { connectCore } from './core.ts';
import { Endpoint } from './endpoint.ts';
import { type Endpoints, parseEndpoints } from './endpoints-file.ts';
import { createRelayMetrics } from './observation.ts';

/**
 * Starts the relay, which sends lead changes to the endpoints in its file. The core may start later.
 *
 * @throws Error when the metrics port is taken, or the certificates are unusable
 */
export async function startRelay(config: RelayConfig): Promise<Running> {
  const credentials = new TlsCredentials(tlsToCore(config));
  const log = await createLogger('relay', config.LOG_LEVEL);
  logSettings(log, relaySummary(config), config);
  const token = new CoreToken(config);
  const core = connectCore(config, credentials, token);
  const endpoints = new Map<string, Endpoint>();
  const metrics = config.RELAY_METRICS_ADDRESS && createRelayMetrics(endpoints, credentials);
  const metricsServer = await serveMetrics(metrics?.registry, config.RELAY_METRICS_ADDRESS, log);
  const parts = { core, log, metrics, concurrency: config.RELAY_CONCURRENCY };
  const stopping = new Map<string, Promise<void>>();
  let wanted: Endpoints = new Map();

  /** Starts, changes and stops endpoints as their file says. An endpoint that returns starts once its former run has stopped. */
  const use = (next: Endpoints) => {
    wanted = next;
    for (const [name, endpoint] of endpoints) {
      if (wanted.has(name)) continue;
      endpoints.delete(name);
      const stopped = endpoint.stop().then(() => {
        stopping.delete(name);
        use(wanted);
      });
      stopping.set(name, stopped);
    }
    for (const [name, settings] of wanted) {
      const existing = endpoints.get(name);
      if (existing) existing.change(settings);
      else if (!stopping.has(name)) endpoints.set(name, new Endpoint(name, settings, parts));
    }
    return { endpoints: [...wanted.keys()] };
  };

  const file = config.RELAY_ENDPOINTS_FILE;
  use(file.endpoints);
  const reload = (text: string) => use(parseEndpoints(text));
  const stopWatching = [
    credentials.watch(log),
    token.watch(log),
    watchFiles({ what: 'endpoints', files: [file], reload }, log),
  ];
  return {
    url: '',
    metricsUrl: metricsServer?.url,
    drainMs: 0,
    /** Waits at most RELAY_AFTER_STOP_MS for requests in flight, and until the core knows their outcomes. */
    async stop() {
      for (const stop of stopWatching) stop();
      use(new Map());
      await Promise.all(stopping.values());
      core.close();
      await metricsServer?.close();
    },
  };
}
