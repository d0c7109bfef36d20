import { Counter, Histogram, type Registry } from '@prometheus-io/client';
import { createRegistry, DURATIONS, gauge, gaugeExpiries, SIZES } from '../../common/metrics.ts';
import type { Readiness } from '../../common/readiness.ts';
import type { TlsCredentials } from '../../common/tls-credentials.ts';
import type { Caller } from '../domain/caller.ts';
import type { LeadChangeStore, StoreCommand } from '../store/store.ts';

/** Everything that the core counts. Each label has a closed list of values: nothing that a caller sends is one. */
export interface CoreMetrics {
  readonly registry: Registry;
  callBegan(): void;
  callFinished(operation: string, outcome: string, durationMs: number, isReplay: boolean): void;
  /** One of the named callers has made a call. */
  callerCalled(caller: Caller): void;
  /** A message came with so many requests. */
  batchCame(operation: string, requests: number): void;
  /** A command goes to the database; what this gives is told whether it was done. */
  storeCommand(command: StoreCommand): (isDone: boolean) => void;
  /** Has it told how many leads have changes that nobody has acknowledged. */
  watchLeadChanges(store: Pick<LeadChangeStore, 'measureLeadChanges'>): void;
  /** Has it told how long the certificates last. */
  watchCertificates(credentials: TlsCredentials): void;
  /** Has it told whether the store is there, and whether the core means to stop. */
  watchReadiness(store: Readiness, draining: AbortSignal): void;
}

/** What is shown from the start, so that not even the first fault is missed. */
const OPERATIONS = [
  'CreateLead',
  'GetLead',
  'ListLeads',
  'AuthenticateApiKey',
  'AcknowledgeLeadChanges',
  'ExportLeads',
];
const FROM_THE_START = ['ok', 'INTERNAL', 'UNAVAILABLE'];

/** Up to how many leads with unacknowledged changes are counted: whoever looks wants to know whether they become more. */
const MAX_COUNTED = 100_000;

/** For how long a count holds; milliseconds. On some databases it takes a second. */
const COUNT_HOLDS_MS = 30_000;

export function createCoreMetrics(): CoreMetrics {
  const registry = createRegistry();
  const calls = new Histogram({
    name: 'lead_intake_core_call_duration_seconds',
    help: 'Calls by operation and outcome (ok, the reason of a refusal, or a status), and how long they took.',
    labelNames: ['operation', 'outcome'],
    buckets: DURATIONS,
    registers: [registry],
  });
  for (const operation of OPERATIONS) for (const outcome of FROM_THE_START) calls.zero({ operation, outcome });
  const batches = new Histogram({
    name: 'lead_intake_core_batch_requests',
    help: 'Messages of batch calls by operation, and how many requests each carried.',
    labelNames: ['operation'],
    buckets: SIZES,
    registers: [registry],
  });
  const commands = new Histogram({
    name: 'lead_intake_core_store_duration_seconds',
    help: 'Commands to the store by what they do and whether they succeeded, and how long they took.',
    labelNames: ['command', 'outcome'],
    buckets: DURATIONS,
    registers: [registry],
  });
  const sizes = new Histogram({
    name: 'lead_intake_core_store_batch_size',
    help: 'Commands to the store by what they do, and how many writes or reads shared each.',
    labelNames: ['command'],
    buckets: SIZES,
    registers: [registry],
  });
  const callsOfCallers = new Counter({
    name: 'lead_intake_core_caller_calls_total',
    help: "Calls of named callers, by what they were known by: the beginning of a token's SHA-256, or `certificate`.",
    labelNames: ['caller', 'credential'],
    registers: [registry],
  });
  const replays = new Counter({
    name: 'lead_intake_core_replays_total',
    help: 'Creations that were answered with the lead of an earlier request.',
    registers: [registry],
  });
  let underWay = 0;
  gauge(registry, 'lead_intake_core_calls_under_way', 'Calls that have no outcome yet.', () => underWay);

  return {
    registry,
    callBegan() {
      underWay += 1;
    },
    callFinished(operation, outcome, durationMs, isReplay) {
      underWay -= 1;
      calls.observe({ operation, outcome }, durationMs / 1000);
      if (isReplay) replays.inc();
    },
    callerCalled({ name: caller, credential }) {
      if (caller !== null && credential !== null) callsOfCallers.inc({ caller, credential });
    },
    batchCame: (operation, requests) => batches.observe({ operation }, requests),
    storeCommand({ name: command, size }) {
      const began = performance.now();
      sizes.observe({ command }, size);
      return (isDone) =>
        commands.observe({ command, outcome: isDone ? 'ok' : 'failed' }, (performance.now() - began) / 1000);
    },
    watchLeadChanges: (store) => gaugeLeadChanges(registry, store),
    watchCertificates: (credentials) =>
      gaugeExpiries(registry, 'lead_intake_core_certificate_expiry_timestamp_seconds', credentials),
    watchReadiness(store, draining) {
      const isUp = async () => Number((await store.fault()) === undefined);
      gauge(registry, 'lead_intake_core_store_up', 'Whether the store answers and is complete.', isUp, 'min');
      gauge(registry, 'lead_intake_core_stopping', 'Whether it means to stop.', () => Number(draining.aborted), 'max');
    },
  };
}

function gaugeLeadChanges(registry: Registry, store: Pick<LeadChangeStore, 'measureLeadChanges'>): void {
  let counted: { readonly at: number; readonly changes: ReturnType<typeof store.measureLeadChanges> } | undefined;
  const measure = () => {
    if (!counted || performance.now() - counted.at > COUNT_HOLDS_MS) {
      counted = { at: performance.now(), changes: store.measureLeadChanges(MAX_COUNTED) };
    }
    return counted.changes;
  };
  // A store that is away must not take the other metrics along.
  const unlessAway = (look: () => Promise<number>) => () => look().catch(() => Number.NaN);
  gauge(
    registry,
    'lead_intake_core_changes_waiting',
    `Leads with changes that no consumer has acknowledged, counted up to ${MAX_COUNTED}.`,
    unlessAway(async () => (await measure()).leads),
    'max',
  );
  gauge(
    registry,
    'lead_intake_core_changes_oldest_seconds',
    'How long ago the oldest of them began; 0: there are none.',
    unlessAway(async () => {
      const { since } = await measure();
      return since ? Math.max(0, Date.now() - since.getTime()) / 1000 : 0;
    }),
    'max',
  );
}
