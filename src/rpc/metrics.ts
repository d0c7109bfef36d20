import { Counter, Histogram, type Registry } from '@prometheus-io/client';
import { createRegistry, DURATIONS, gauge, gaugeExpiries, SIZES } from '../../common/metrics.ts';
import type { Readiness } from '../../common/readiness.ts';
import type { TlsCredentials } from '../../common/tls-credentials.ts';
import type { Caller } from '../domain/caller.ts';
import type { LeadChangeStore, StoreCommand } from '../store/store.ts';

/** The core's metrics. Each label has a closed set of values; nothing that a caller sends becomes one. */
export interface CoreMetrics {
  readonly registry: Registry;
  callBegan(): void;
  callFinished(operation: string, outcome: string, durationMs: number, isReplay: boolean): void;
  /** Counts a call by its caller, if that has a name. */
  callerCalled(caller: Caller): void;
  /** Records the number of requests in a message. */
  batchReceived(operation: string, requests: number): void;
  /** Begins a database command; the returned function records its end. */
  storeCommand(command: StoreCommand): (isDone: boolean) => void;
  /** Exports how many leads have unacknowledged changes, and since when. */
  watchLeadChanges(store: Pick<LeadChangeStore, 'measureLeadChanges'>): void;
  /** Exports when the certificates expire. */
  watchCertificates(credentials: TlsCredentials): void;
  /** Counts a clock that was ahead, and no longer is. */
  clockSetBack(): void;
  /** Exports whether the store is available, and whether the core is shutting down. */
  watchReadiness(store: Readiness, draining: AbortSignal): void;
}

/** The series that are exported from the start, so that a rate includes their first event. */
const OPERATIONS = [
  'CreateLead',
  'GetLead',
  'ListLeads',
  'AuthenticateApiKey',
  'AcknowledgeLeadChanges',
  'ExportLeads',
];
const OUTCOMES = ['ok', 'INTERNAL', 'UNAVAILABLE'];

/** The maximum to which leads with unacknowledged changes are counted. It suffices to see whether they accumulate. */
const MAX_COUNTED = 100_000;

/** How long a count is cached; milliseconds. Counting can take a second. A failed count is not cached. */
const COUNT_TTL_MS = 30_000;

export function createCoreMetrics(): CoreMetrics {
  const registry = createRegistry();
  const calls = new Histogram({
    name: 'lead_intake_core_call_duration_seconds',
    help: 'Duration of calls by operation and outcome (ok, the reason of a refusal, or a status).',
    labelNames: ['operation', 'outcome'],
    buckets: DURATIONS,
    registers: [registry],
  });
  for (const operation of OPERATIONS) for (const outcome of OUTCOMES) calls.zero({ operation, outcome });
  const batches = new Histogram({
    name: 'lead_intake_core_batch_requests',
    help: 'Requests per message of the exchange by operation.',
    labelNames: ['operation'],
    buckets: SIZES,
    registers: [registry],
  });
  const commands = new Histogram({
    name: 'lead_intake_core_store_duration_seconds',
    help: 'Duration of database commands by command and outcome.',
    labelNames: ['command', 'outcome'],
    buckets: DURATIONS,
    registers: [registry],
  });
  const sizes = new Histogram({
    name: 'lead_intake_core_store_batch_size',
    help: 'Writes or reads per database command by command.',
    labelNames: ['command'],
    buckets: SIZES,
    registers: [registry],
  });
  const callsOfCallers = new Counter({
    name: 'lead_intake_core_caller_calls_total',
    help: "Calls of named callers by credential: the beginning of a token's SHA-256, or `certificate`.",
    labelNames: ['caller', 'credential'],
    registers: [registry],
  });
  const replays = new Counter({
    name: 'lead_intake_core_replays_total',
    help: 'Creations that returned the lead of an earlier request.',
    registers: [registry],
  });
  let inFlight = 0;
  gauge(registry, 'lead_intake_core_calls_under_way', 'Calls in flight.', () => inFlight);

  return {
    registry,
    callBegan() {
      inFlight += 1;
    },
    callFinished(operation, outcome, durationMs, isReplay) {
      inFlight -= 1;
      calls.observe({ operation, outcome }, durationMs / 1000);
      if (isReplay) replays.inc();
    },
    callerCalled({ name: caller, credential }) {
      if (caller !== null && credential !== null) callsOfCallers.inc({ caller, credential });
    },
    batchReceived: (operation, requests) => batches.observe({ operation }, requests),
    storeCommand({ name: command, size }) {
      const began = performance.now();
      sizes.observe({ command }, size);
      return (isDone) =>
        commands.observe({ command, outcome: isDone ? 'ok' : 'failed' }, (performance.now() - began) / 1000);
    },
    clockSetBack: exportClock(registry),
    watchLeadChanges: (store) => gaugeLeadChanges(registry, store),
    watchCertificates: (credentials) =>
      gaugeExpiries(registry, 'lead_intake_core_certificate_expiry_timestamp_seconds', credentials),
    watchReadiness(store, draining) {
      const isUp = async () => Number((await store.fault()) === undefined);
      gauge(registry, 'lead_intake_core_store_up', 'Whether the store is available and complete.', isUp);
      gauge(registry, 'lead_intake_core_stopping', 'Whether the core is stopping.', () => Number(draining.aborted));
    },
  };
}

/** Exports the clock, and returns a function that counts that it was set back. */
function exportClock(registry: Registry): () => void {
  gauge(
    registry,
    'lead_intake_core_clock_timestamp_seconds',
    'The time by the clock of the core; seconds since 1970.',
    () => Date.now() / 1000,
  );
  const setBacks = new Counter({
    name: 'lead_intake_core_clock_set_back_total',
    help: 'How often the clock was set back by more than a minute after leads were created with its time.',
    registers: [registry],
  });
  return () => setBacks.inc();
}

function gaugeLeadChanges(registry: Registry, store: Pick<LeadChangeStore, 'measureLeadChanges'>): void {
  let counted: { readonly at: number; readonly changes: ReturnType<typeof store.measureLeadChanges> } | undefined;
  const measure = () => {
    if (!counted || performance.now() - counted.at > COUNT_TTL_MS) {
      const changes = store.measureLeadChanges(MAX_COUNTED);
      counted = { at: performance.now(), changes };
      changes.catch(() => {
        counted = undefined;
      });
    }
    return counted.changes;
  };
  // An unavailable store must not fail the export of the other metrics.
  const orNaN = (read: () => Promise<number>) => () => read().catch(() => Number.NaN);
  gauge(
    registry,
    'lead_intake_core_changes_waiting',
    `Leads with unacknowledged changes, counted up to ${MAX_COUNTED}.`,
    orNaN(async () => (await measure()).leads),
  );
  gauge(
    registry,
    'lead_intake_core_changes_oldest_seconds',
    'Age of the oldest unacknowledged change; 0: there is none.',
    orNaN(async () => {
      const { since } = await measure();
      return since ? Math.max(0, Date.now() - since.getTime()) / 1000 : 0;
    }),
  );
}
