import { AsyncLocalStorage } from 'node:async_hooks';

/** Attributes of a span; undefined ones are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A unit of work in a trace. */
export interface Span {
  /** The W3C `traceparent` by which another process names this span as the parent of its spans. */
  readonly traceparent: string;
  /** The id of its trace, 32 hexadecimal digits. */
  readonly traceId: string;
  /** Whether it is exported, as decided where the trace began. */
  readonly isSampled: boolean;
  /**
   * Starts a child span.
   *
   * @param kind `client`: another system, such as a database, does the work
   */
  child(name: string, attributes: Attributes, kind?: 'client' | 'internal'): Span;
  /** Links this span to another one, which may be in another trace. */
  linkTo(other: Span): void;
  end(outcome: { readonly failed: boolean; readonly attributes?: Attributes }): void;
}

export interface Tracer {
  /**
   * Starts the span of a request.
   *
   * @param traceparent the caller's; an invalid or missing one starts a new trace
   */
  begin(name: string, traceparent: string | undefined): Span;
  /** The number of spans that were not received. */
  dropped(): number;
  /** Sends the remaining spans; gives up after TRACES_CLOSE_MS. */
  close(): Promise<void>;
}

/** The span of the request that is being handled. */
export const currentSpan = new AsyncLocalStorage<Span>();

/** The sampled spans among these, each once. */
export const sampledSpans = (spans: Iterable<Span | undefined>): Span[] =>
  [...new Set(spans)].filter((span) => span !== undefined).filter(({ isSampled }) => isSampled);

/**
 * Starts a span of work that is done once for several spans. It is a child of the first, whose trace is complete and
 * decides on sampling, and it is linked with each of the others in both directions, so that every trace leads to it.
 */
export function sharedChild(first: Span, others: readonly Span[], ...child: Parameters<Span['child']>): Span {
  const shared = first.child(...child);
  for (const other of others) link(shared, other);
  return shared;
}

/** Links two spans in both directions. */
export function link(one: Span, other: Span): void {
  one.linkTo(other);
  other.linkTo(one);
}
