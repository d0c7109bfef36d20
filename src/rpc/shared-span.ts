import { currentSpan, type Span, sampledSpans, sharedChild } from '../../common/tracing.ts';
import { Refusal } from '../domain/refusal.ts';

/**
 * Does work that several calls share, within a span that is linked to all of theirs. Work of a single call is done
 * within that call's span.
 *
 * @param spans the spans of the calls
 */
export async function withSharedSpan<Result>(
  spans: Iterable<Span | undefined>,
  name: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const [first, ...others] = sampledSpans(spans);
  if (!first) return work();
  if (others.length === 0) return currentSpan.run(first, work);
  const span = sharedChild(first, others, name, {}, 'internal');
  try {
    const result = await currentSpan.run(span, work);
    span.end({ failed: false });
    return result;
  } catch (error) {
    span.end({ failed: !(error instanceof Refusal) });
    throw error;
  }
}
