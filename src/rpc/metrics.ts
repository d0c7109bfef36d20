import { Counter, type Registry } from 'prom-client';
import { DURATIONS, Histogram, SIZES } from '../runtime/histogram.ts';
import { createRegistry, gauge } from '../runtime/metrics.ts';
import type { StoreObserver } from '../store/store.ts';

/** Everything that the core counts. Each label has a closed list of values: nothing that a caller sends is one. */
export interface CoreMetrics {
  readonly registry: Registry;
  callBegan(): void;
  callFinished(operation: string, outcome: string, durationMs: number, isReplay: boolean): void;
  /** A message came with so many requests. */
  batchCame(operation: string, requests: number): void;
  /** A command goes to the store. */
  readonly storeCommand: StoreObserver;
  /** Has it told whether the store is there, and whether the core means to stop. */
  watchReadiness(readiness: { readonly store: () => Promise<boolean>; readonly isStopping: () => boolean }): void;
}

/** What is shown from the start, so that not even the first fault is missed. */
const OPERATIONS = ['CreateLead', 'GetLead', 'ListLeads', 'AuthenticateApiKey'];
const FROM_THE_START = ['ok', 'INTERNAL', 'UNAVAILABLE'];

export function createCoreMetrics(): CoreMetrics {
  const registry = createRegistry();
  const calls = new Histogram(registry, {
    name: 'lead_intake_core_call_duration_seconds',
    help: 'Calls by operation and outcome (ok, the reason of a refusal, or a status), and how long they took.',
    labels: ['operation', 'outcome'],
    bounds: DURATIONS,
  });
  for (const operation of OPERATIONS) for (const outcome of FROM_THE_START) calls.begin(operation, outcome);
  const batches = new Histogram(registry, {
    name: 'lead_intake_core_batch_requests',
    help: 'Messages of batch calls by operation, and how many requests each carried.',
    labels: ['operation'],
    bounds: SIZES,
  });
  const commands = new Histogram(registry, {
    name: 'lead_intake_core_store_duration_seconds',
    help: 'Commands to the store by what they do and whether they succeeded, and how long they took.',
    labels: ['command', 'outcome'],
    bounds: DURATIONS,
  });
  const sizes = new Histogram(registry, {
    name: 'lead_intake_core_store_batch_size',
    help: 'Commands to the store by what they do, and how many writes or reads shared each.',
    labels: ['command'],
    bounds: SIZES,
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
      calls.observe(durationMs / 1000, operation, outcome);
      if (isReplay) replays.inc();
    },
    batchCame: (operation, requests) => batches.observe(requests, operation),
    storeCommand(command, size) {
      const began = performance.now();
      sizes.observe(size, command);
      return (isDone) => commands.observe((performance.now() - began) / 1000, command, isDone ? 'ok' : 'failed');
    },
    watchReadiness({ store, isStopping }) {
      const isUp = async () => Number(await store());
      gauge(registry, 'lead_intake_core_store_up', 'Whether the store answers and is complete.', isUp);
      gauge(registry, 'lead_intake_core_stopping', 'Whether it means to stop.', () => Number(isStopping()));
    },
  };
}
