import { currentSpan, type Span, sampledSpans, sharedChild, type Tracer } from '../../common/tracing.ts';
import type { StoreObserver } from '../store/store.ts';
import type { CoreMetrics } from './metrics.ts';

/** Returns an observer that counts and traces database commands; undefined if both are disabled. */
export function storeObserver(
  metrics: CoreMetrics | undefined,
  tracer: Tracer | undefined,
): StoreObserver<Span> | undefined {
  if (!metrics && !tracer) return undefined;
  return {
    caller: () => currentSpan.getStore(),
    commandStarted(command, spans) {
      const { system, name, size } = command;
      const counted = metrics?.storeCommand(command);
      const [first, ...others] = sampledSpans(spans);
      const attributes = { 'db.system.name': system, 'db.operation.name': name, 'db.operation.batch.size': size };
      const span = first && sharedChild(first, others, `${system} ${name}`, attributes);
      return (isDone) => {
        counted?.(isDone);
        span?.end({ failed: !isDone });
      };
    },
  };
}
