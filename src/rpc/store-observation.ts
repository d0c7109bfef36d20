import type { Span } from '../../common/tracing.ts';
import { beneficiaries, type StoreObserver } from '../store/store.ts';

/** Tells of every command to the store to all who are given; undefined when there is nobody. */
export function storeObserver(...observers: readonly (StoreObserver | undefined)[]): StoreObserver | undefined {
  const there = observers.filter((observer) => observer !== undefined);
  if (there.length < 2) return there[0];
  return (command, size) => {
    const finishes = there.map((observe) => observe(command, size));
    return (isDone) => {
      for (const finish of finishes) finish(isDone);
    };
  };
}

/**
 * Traces every command in the trace of each call that it is for: of many calls that share one, each has it whole.
 *
 * @param system what the database is, in OpenTelemetry's words
 */
export function commandTracer(system: 'sqlite' | 'mongodb'): StoreObserver {
  return (command, size) => {
    const attributes = { 'db.system.name': system, 'db.operation.name': command, 'db.operation.batch.size': size };
    const calls = (beneficiaries.getStore() ?? []) as readonly Span[];
    const spans = calls.map((call) => call.child(`${system} ${command}`, attributes));
    return (isDone) => {
      for (const span of spans) span.end({ failed: !isDone });
    };
  };
}
