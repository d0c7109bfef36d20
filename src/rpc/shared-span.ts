import { currentSpan, keptOf, type Span, sharedChild } from '../../common/tracing.ts';
import { Refusal } from '../domain/refusal.ts';

/**
 * Does once what several calls need, and traces it as what they share. What a single call needs is done as a part of that:
 * it needs no span of its own.
 *
 * @param askers the calls, as far as they are traced
 */
export async function withSharedSpan<Result>(
  askers: Iterable<Span | undefined>,
  name: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const [first, ...others] = keptOf(askers);
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
