import { STORE_CALL_MS } from '../../common/deadlines.ts';
import { Metrics, SIZES } from '../../common/metrics.ts';
import type { Readiness } from '../../common/readiness.ts';
import type { TlsCredentials } from '../../common/tls-credentials.ts';
import type { Caller } from '../domain/caller.ts';
import { DEFAULT_CONSUMER } from '../domain/consumer.ts';
import type { MeasuredDeliveries } from '../store/port/deliveries.ts';
import type { StoreCommand } from '../store/port/listeners.ts';
import type { Store } from '../store/store.ts';
import { MAX_COUNTED, measureConsumer } from '../usecases/consumers.ts';
import type { Changing } from '../usecases/dependencies.ts';
import { countExpiringKeys, EXPIRING_WITHIN_DAYS } from '../usecases/manage-api-keys.ts';
import type { RetentionMetrics } from '../usecases/retain-leads.ts';

/** The label values that are exported from the start, so that a rate includes the first event. */
const OPERATIONS = ['CreateLead', 'GetLead', 'ListLeads', 'AuthenticateApiKey', 'ExportLeads'];
const OUTCOMES = ['ok', 'INTERNAL', 'UNAVAILABLE'];

/** How long a count is cached; milliseconds. Counting can take a second. A failed count is not cached. */
const COUNT_TTL_MS = 30_000;

/**
 * Creates the core's metrics. Each label has a closed set of values. Callers cannot add any, except the few names of
 * consumers.
 */
export function createCoreMetrics() {
  const registry = new Metrics();
  const calls = registry.histogram(
    'lead_intake_core_call_duration_seconds',
    'Duration of calls by operation and outcome (ok, the reason of a refusal, or a status).',
    ['operation', 'outcome'],
  );
  for (const operation of OPERATIONS) for (const outcome of OUTCOMES) calls.zero({ operation, outcome });
  const batches = registry.histogram(
    'lead_intake_core_batch_requests',
    'Requests per message of the exchange by operation.',
    ['operation'],
    SIZES,
  );
  const commands = registry.histogram(
    'lead_intake_core_store_duration_seconds',
    'Duration of database commands by command and outcome.',
    ['command', 'outcome'],
  );
  const sizes = registry.histogram(
    'lead_intake_core_store_batch_size',
    'Writes or reads per database command by command.',
    ['command'],
    SIZES,
  );
  const callsOfCallers = registry.counter(
    'lead_intake_core_caller_calls_total',
    "Calls of named callers by credential: the beginning of a token's SHA-256, or `certificate`.",
    ['caller', 'credential'],
  );
  const countOutcome = exportOutcomes(registry);
  let inFlight = 0;
  registry.gauge('lead_intake_core_calls_under_way', 'Calls in flight.', () => inFlight);

  return {
    registry,
    callBegan() {
      inFlight += 1;
    },
    callFinished(call: FinishedCall) {
      inFlight -= 1;
      calls.observe({ operation: call.operation, outcome: call.outcome }, call.durationMs / 1000);
      countOutcome(call);
    },
    callerCalled({ name: caller, credential }: Caller) {
      if (caller !== null && credential !== null) callsOfCallers.inc({ caller, credential });
    },
    batchReceived: (operation: string, requests: number) => batches.observe({ operation }, requests),
    /** Begins a database command; the returned function records its end. */
    storeCommand({ name: command, size }: StoreCommand) {
      const began = performance.now();
      sizes.observe({ command }, size);
      return (isDone: boolean) =>
        commands.observe({ command, outcome: isDone ? 'ok' : 'failed' }, (performance.now() - began) / 1000);
    },
    clockSetBack: exportClock(registry),
    retention: exportRetention(registry),
    watchLeadChanges: (store: Store) => gaugeLeadChanges(registry, store),
    watchSqliteLog: (read?: () => Promise<number>) =>
      read && registry.gauge('lead_intake_core_sqlite_log_bytes', "Size of SQLite's log (-wal).", orNaN(read)),
    watchKeys: (deps: Changing) => gaugeExpiringKeys(registry, deps),
    watchCertificates: (credentials: TlsCredentials) =>
      registry.gaugeExpiries('lead_intake_core_certificate_expiry_timestamp_seconds', credentials),
    /** Exports whether the store is available, and whether the core is shutting down. */
    watchReadiness(store: Readiness, draining: AbortSignal) {
      const isUp = async () => Number((await store.fault()) === undefined);
      registry.gauge('lead_intake_core_store_up', 'Whether the store is available and complete.', isUp);
      registry.gauge('lead_intake_core_stopping', 'Whether the core is stopping.', () => Number(draining.aborted));
    },
  };
}

export type CoreMetrics = ReturnType<typeof createCoreMetrics>;

interface FinishedCall {
  readonly operation: string;
  readonly outcome: string;
  readonly durationMs: number;
  readonly replayed: boolean;
  /** The consumer in the request, if it names one. */
  readonly consumer: string | undefined;
}

/** Exports outcomes that only messages reveal, and returns a function that counts them. */
function exportOutcomes(registry: Metrics): (call: FinishedCall) => void {
  const replays = registry.counter(
    'lead_intake_core_replays_total',
    'Creations that returned the lead of an earlier request.',
  );
  const acknowledgements = registry.counter(
    'lead_intake_core_unnamed_acknowledgements_total',
    'Calls that acknowledged changes for the consumer without a name.',
  );
  return ({ operation, outcome, replayed, consumer }) => {
    if (replayed) replays.inc();
    const isOfDefault = consumer === '' || consumer === DEFAULT_CONSUMER.name;
    if (operation === 'AcknowledgeLeadChanges' && outcome === 'ok' && isOfDefault) acknowledgements.inc();
  };
}

/** Exports the clock, and returns a function that counts how often it was set back. */
function exportClock(registry: Metrics): () => void {
  registry.gauge(
    'lead_intake_core_clock_timestamp_seconds',
    'The time by the clock of the core; seconds since 1970.',
    () => Date.now() / 1000,
  );
  const setBacks = registry.counter(
    'lead_intake_core_clock_set_back_total',
    'How often the clock was set back by more than a minute after leads were created with its time.',
  );
  return () => setBacks.inc();
}

/** Exports the outcomes of leads whose retention has ended, and the retention time. */
function exportRetention(registry: Metrics): RetentionMetrics {
  let latest: Date | null = null;
  const leads = registry.counter(
    'lead_intake_core_retention_leads_total',
    'Leads whose retention has ended, by outcome. Leads that could not be erased count again every hour.',
    ['outcome'],
  );
  registry.gauge(
    'lead_intake_core_retention_lag_seconds',
    'How far the retention time is behind the clock of the core.',
    () => (latest ? (Date.now() - latest.getTime()) / 1000 : Number.NaN),
  );
  return {
    time(time) {
      latest = time;
    },
    processed: (outcome, count) => leads.inc({ outcome }, count),
  };
}

/** Returns a function that measures at most once in COUNT_TTL_MS. */
function cached<Measured>(measure: () => Promise<Measured>): () => Promise<Measured> {
  let last: { readonly at: number; readonly measured: Promise<Measured> } | undefined;
  return () => {
    if (!last || performance.now() - last.at > COUNT_TTL_MS) {
      const measured = measure();
      last = { at: performance.now(), measured };
      measured.catch(() => {
        last = undefined;
      });
    }
    return last.measured;
  };
}

/** How long the count of expiring keys is cached; milliseconds. It reads the keys of every studio. */
const KEYS_TTL_MS = 60 * 60 * 1000;

/** Exports how many keys in use expire soon. A scrape never waits for the count: it gets the last one, or NaN before the first. */
function gaugeExpiringKeys(registry: Metrics, deps: Changing): void {
  let last: { readonly at: number; readonly counts: ReadonlyMap<number, number> } | undefined;
  let isCounting = false;
  const count = async () => {
    isCounting = true;
    try {
      last = { at: performance.now(), counts: await countExpiringKeys(deps) };
    } catch {
      // The next scrape counts again.
    } finally {
      isCounting = false;
    }
  };
  const read = async () => {
    if (!isCounting && !(last && performance.now() - last.at < KEYS_TTL_MS)) void count();
    return EXPIRING_WITHIN_DAYS.map((days) => [`${days}`, last?.counts.get(days) ?? Number.NaN] as const);
  };
  registry.gaugeBy(
    'lead_intake_core_keys_ending',
    'Valid keys that were used in the last 30 days and expire within this many days. The count is at most an hour old.',
    { label: 'days', read },
  );
}

const ageSeconds = (since: Date | null): number => (since ? Math.max(0, Date.now() - since.getTime()) / 1000 : 0);

/** An unavailable store must not fail the export of the other metrics. */
const orNaN = (read: () => Promise<number>) => () => read().catch(() => Number.NaN);

/** Exports how many leads have unacknowledged changes, and since when. */
function gaugeLeadChanges(registry: Metrics, store: Store): void {
  const measure = cached(async () => (await measureConsumer({ store }, DEFAULT_CONSUMER)).waiting);
  registry.gauge(
    'lead_intake_core_changes_waiting',
    `Leads with unacknowledged changes, counted up to ${MAX_COUNTED}.`,
    orNaN(async () => (await measure()).leads),
  );
  registry.gauge(
    'lead_intake_core_changes_oldest_seconds',
    'Age of the oldest unacknowledged change; 0: there is none.',
    orNaN(async () => ageSeconds((await measure()).since)),
  );
  const measureConsumers = cached(async () => {
    const measured: (readonly [name: string, deliveries: MeasuredDeliveries])[] = [];
    const unknown = { leads: Number.NaN, since: new Date(Number.NaN) };
    const none = { waiting: unknown, setAside: unknown, isComplete: false };
    const began = performance.now();
    // One after the other, because counting is the most expensive query. Once one count takes its maximum time, others would as well.
    for (const consumer of await store.listConsumers()) {
      const isLate = performance.now() - began >= STORE_CALL_MS;
      measured.push([consumer.name, isLate ? none : await measureConsumer({ store }, consumer).catch(() => none)]);
    }
    return measured;
  });
  const byConsumer = (value: (measured: MeasuredDeliveries) => number) => ({
    label: 'consumer',
    read: async () =>
      (await measureConsumers().catch(() => [])).map(([name, measured]) => [name, value(measured)] as const),
  });
  registry.gaugeBy(
    'lead_intake_core_consumer_changes_waiting',
    `Leads with changes that a named consumer has not acknowledged, counted up to ${MAX_COUNTED}, by consumer.`,
    byConsumer(({ waiting }) => waiting.leads),
  );
  registry.gaugeBy(
    'lead_intake_core_consumer_changes_oldest_seconds',
    'Age of the oldest change that a named consumer has not acknowledged, by consumer; 0: there is none.',
    byConsumer(({ waiting }) => ageSeconds(waiting.since)),
  );
  registry.gaugeBy(
    'lead_intake_core_consumer_changes_set_aside',
    `Leads that a named consumer has set aside until they are taken back, counted up to ${MAX_COUNTED}, by consumer.`,
    byConsumer(({ setAside }) => setAside.leads),
  );
}
