import type { Logger } from 'pino';
import { serve } from '../common/app.ts';
import { createLogger, logSettings } from '../common/logger.ts';
import { openTracer } from '../common/open-tracer.ts';
import { Readiness } from '../common/readiness.ts';
import type { Running } from '../common/run-until-stopped.ts';
import { bearerToken, readCoreToken } from '../common/settings.ts';
import { TlsCredentials } from '../common/tls-credentials.ts';
import { watchFiles } from '../common/watched-files.ts';
import { parseCallers } from './callers-file.ts';
import { type CoreConfig, coreSummary, coreTls } from './config.ts';
import { idGenerator, systemClock } from './domain/new-id.ts';
import { createCoreServer } from './port/core-server.ts';
import { Callers } from './rpc/callers.ts';
import { retentionObserver, slowCommandLog, unreadableRecordLog } from './rpc/log.ts';
import { type CoreMetrics, createCoreMetrics } from './rpc/metrics.ts';
import { callRunner } from './rpc/run-call.ts';
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
  const tracer = await openTracer('core', config, log, metrics?.registry);
  const store = await openLoggedStore(config, log, metrics);
  const stopping = new AbortController();
  const readiness = new Readiness('the database', () => store.check(), log);
  metrics?.watchCertificates(credentials);
  metrics?.watchLeadChanges(store);
  metrics?.watchSqliteLog(sqliteLogIn(config.DATABASE_URL.reveal()));
  metrics?.watchKeys({ store, clock: systemClock });
  metrics?.watchReadiness(readiness, stopping.signal);
  const newId = idGenerator(Date.now, (aheadMs) => {
    metrics?.clockSetBack();
    log.warn({ aheadMs }, 'the clock was set back: leads created earlier have times in the future');
  });
  const callers = new Callers(readCoreToken(config), config.CORE_CALLERS_FILE?.entries);
  const app = createCoreServer(
    config,
    { store, clock: systemClock, newId },
    {
      callers,
      log,
      credentials,
      readiness,
      draining: stopping.signal,
      run: callRunner(log, metrics, tracer),
      batchReceived: metrics?.batchReceived,
    },
  );
  const retaining = retainLeads({ store, clock: systemClock }, retentionObserver(log, metrics), stopping.signal);
  const stopWatching = watchCallers(config, callers, log);
  app.addHook('onClose', async () => {
    for (const stop of stopWatching) stop();
    await retaining;
    await Promise.all([store.close(), tracer?.close()]);
  });
  return serve(app, {
    address: { host: config.CORE_HOST, port: config.CORE_PORT },
    reusePort: config.REUSE_PORT,
    isSecure: credentials.loaded.pem.cert !== undefined,
    metrics,
    metricsAddress: config.CORE_METRICS_ADDRESS,
    dependencies: [readiness],
    stopping,
    drainMs: config.SHUTDOWN_DRAIN_MS,
  });
}

/** Opens the store, and logs if its file was just created or is an unregistered backup. */
async function openLoggedStore(config: CoreConfig, log: Logger, metrics: CoreMetrics | undefined) {
  const databaseUrl = config.DATABASE_URL.reveal();
  const created = absentFileIn(databaseUrl);
  const store = await openStore(databaseUrl, {
    observer: metrics?.storeCommand,
    report: unreadableRecordLog(log),
    slow: slowCommandLog(log),
    logStays: () => log.warn(LOG_STAYS),
  });
  if (created !== undefined)
    log.info({ file: created }, 'a new database was created: there was no such file, or an empty one');
  // Not awaited: a MongoDB server may not be reachable yet. Only a backup of SQLite records that it is one.
  store.findEpoch().then(
    ({ backedUpAt }) =>
      backedUpAt &&
      log.warn({ backedUpAt }, 'the database is a backup, and consumers do not know it: run `lead-intake restored`'),
    () => {},
  );
  return store;
}

/** Reloads the callers file and CORE_TOKEN_FILE when they change. */
function watchCallers(config: CoreConfig, callers: Callers, log: Logger): (() => void)[] {
  const reload = (text: string) => {
    const entries = parseCallers(text);
    callers.replace(entries);
    return { callers: Object.keys(entries).length };
  };
  const reloadToken = (text: string) => {
    callers.share(bearerToken(text.trim()));
    return {};
  };
  return [
    watchFiles({ what: 'callers', files: [config.CORE_CALLERS_FILE], reload }, log),
    watchFiles({ what: 'tokens for the core', files: [config.coreTokenFile], reload: reloadToken }, log),
  ];
}
