import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createLogger, logSettings } from '../common/logger.ts';
import { countDroppedSpans, type MetricsServer, serveMetrics } from '../common/metrics.ts';
import { openTracer } from '../common/open-tracer.ts';
import { Readiness } from '../common/readiness.ts';
import type { Running } from '../common/run-until-stopped.ts';
import { bearerToken, tokenOf } from '../common/settings.ts';
import { stopListening } from '../common/stop-listening.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import { watchFiles } from '../common/watched-files.ts';
import { parseCallers } from './callers-file.ts';
import { type CoreConfig, coreSummary, coreTls } from './config.ts';
import { idGenerator, systemClock } from './domain/new-id.ts';
import { createCoreServer } from './port/core-server.ts';
import { Callers } from './rpc/callers.ts';
import {
  callRunner,
  createCoreMetrics,
  retentionObserver,
  slowCommandLog,
  unreadableRecordLog,
} from './rpc/observation.ts';
import { absentFileIn, LOG_STAYS, openStore, sqliteLogIn } from './store/open-store.ts';
import { retainLeads } from './usecases/retain-leads.ts';

/**
 * Starts the core: store, use cases, RPCs, port.
 *
 * @throws Error if the certificates are invalid, the store cannot be opened or the port is in use
 */
export async function startCore(config: CoreConfig): Promise<Running> {
  const credentials = new TlsCredentials(coreTls(config));
  const log = await createLogger('core', config.LOG_LEVEL);
  logSettings(log, coreSummary(config), config);
  const metrics = config.CORE_METRICS_ADDRESS && createCoreMetrics();
  const tracer = await openTracer('core', config, log);
  if (metrics && tracer) countDroppedSpans(metrics.registry, tracer);
  const databaseUrl = config.DATABASE_URL.reveal();
  const created = absentFileIn(databaseUrl);
  const store = await openStore(databaseUrl, metrics?.storeCommand, unreadableRecordLog(log), slowCommandLog(log), () =>
    log.warn(LOG_STAYS),
  );
  if (created !== undefined)
    log.warn({ file: created }, 'a new database was created: there was no such file, or an empty one');
  // A server is perhaps not there yet, and notes nothing in its backups.
  store.findEpoch().then(
    ({ backedUpAt }) =>
      backedUpAt &&
      log.warn({ backedUpAt }, 'the database is a backup, and consumers do not know it: run `lead-intake restored`'),
    () => {},
  );
  const draining = new AbortController();
  const readiness = new Readiness('the database', () => store.check(), log);
  metrics?.watchCertificates(credentials);
  metrics?.watchLeadChanges(store);
  metrics?.watchSqliteLog(sqliteLogIn(databaseUrl));
  metrics?.watchKeys({ store, clock: systemClock });
  metrics?.watchReadiness(readiness, draining.signal);
  let metricsServer: MetricsServer | undefined;
  try {
    const newId = idGenerator(Date.now, (aheadMs) => {
      metrics?.clockSetBack();
      log.warn({ aheadMs }, 'the clock was set back: leads created before have times in the future');
    });
    const callers = new Callers(tokenOf(config), config.CORE_CALLERS_FILE?.entries);
    const server = createCoreServer(
      config,
      { store, clock: systemClock, newId },
      {
        callers,
        log,
        credentials,
        readiness,
        draining: draining.signal,
        run: callRunner(log, metrics, tracer),
        batchReceived: metrics?.batchReceived,
      },
    );
    metricsServer = await serveMetrics(metrics?.registry, config.CORE_METRICS_ADDRESS, log);
    const url = await server.listen({ host: config.CORE_HOST, port: config.CORE_PORT, reusePort: config.REUSE_PORT });
    const stopWatching = watchCallers(config, callers, log);
    readiness.start();
    const retaining = retainLeads({ store, clock: systemClock }, retentionObserver(log, metrics), draining.signal);
    return {
      url,
      metricsUrl: metricsServer?.url,
      drainMs: config.SHUTDOWN_DRAIN_MS,
      async stop() {
        draining.abort();
        const connectionsEnded = config.REUSE_PORT && stopListening(server.server);
        // Load balancers must see the health check fail before the port closes.
        await sleep(config.SHUTDOWN_DRAIN_MS);
        for (const stop of stopWatching) stop();
        await server.close();
        await Promise.all([connectionsEnded, retaining]);
        readiness.close();
        await Promise.all([store.close(), metricsServer?.close(), tracer?.close()]);
      },
    };
  } catch (error) {
    await metricsServer?.close();
    readiness.close();
    await store.close();
    throw error;
  }
}

/** Reloads the callers file and CORE_TOKEN_FILE when they change. */
function watchCallers(config: CoreConfig, callers: Callers, log: Logger): (() => void)[] {
  const reload = (text: string) => {
    const entries = parseCallers(text);
    callers.replace(entries);
    return { callers: Object.keys(entries).length };
  };
  const share = (text: string) => {
    callers.share(bearerToken(text.trim()));
    return {};
  };
  return [
    watchFiles({ what: 'callers', files: [config.CORE_CALLERS_FILE], reload }, log),
    watchFiles({ what: 'tokens for the core', files: [config.coreTokenFile], reload: share }, log),
  ];
}
