import { currentSpan, keptOf, type Span, sharedChild, type Tracer } from '../../common/tracing.ts';
import type { StoreObserver } from '../store/store.ts';
import type { CoreMetrics } from './metrics.ts';

/** Counts and traces every command to the database; undefined when nobody would see any of that. */
export function storeObserver(
  metrics: CoreMetrics | undefined,
  tracer: Tracer | undefined,
): StoreObserver<Span> | undefined {
  if (!metrics && !tracer) return undefined;
  return {
    asker: () => currentSpan.getStore(),
    commandBegins(command, askers) {
      const { system, name, size } = command;
      const counted = metrics?.storeCommand(command);
      const [first, ...others] = keptOf(askers);
      const attributes = { 'db.system.name': system, 'db.operation.name': name, 'db.operation.batch.size': size };
      const span = first && sharedChild(first, others, `${system} ${name}`, attributes);
      return (isDone) => {
        counted?.(isDone);
        span?.end({ failed: !isDone });
      };
    },
  };
}
