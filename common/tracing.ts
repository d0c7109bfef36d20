import { AsyncLocalStorage } from 'node:async_hooks';

/** What is told of a piece of work. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A piece of work in a trace, from its beginning to its end. */
export interface Span {
  /** What a part of the trace in another process names as its parent: W3C `traceparent`. */
  readonly traceparent: string;
  /** Whether it is sent at all: who began the trace has decided that. */
  readonly isKept: boolean;
  /**
   * Begins a part of it.
   *
   * @param kind `client`: somebody else does it, such as a database
   */
  child(name: string, attributes: Attributes, kind?: 'client' | 'internal'): Span;
  /** Names another piece of work that it belongs with, in whatever trace that stands. */
  linkTo(other: Span): void;
  /** Ends it. */
  end(outcome: { readonly failed: boolean; readonly attributes?: Attributes }): void;
}

/** Traces what a process does. */
export interface Tracer {
  /**
   * Begins what somebody asked for.
   *
   * @param traceparent the caller's; whatever is none begins a trace
   */
  begin(name: string, traceparent: string | undefined): Span;
  /** Sends what it has; gives up soon, because nobody should wait for it. */
  close(): Promise<void>;
}

/** The piece of work that is done for a request, while it is done. */
export const currentSpan = new AsyncLocalStorage<Span>();

/** Those of pieces of work whose traces are kept, each once. */
export const keptOf = (spans: Iterable<Span | undefined>): Span[] =>
  [...new Set(spans)].filter((span) => span !== undefined).filter(({ isKept }) => isKept);

/**
 * Begins what is done once for several pieces of work. It is a child of the first, so that a trace is whole and it is kept as
 * that is; it is linked with each of the others, in both directions, so that every trace leads to it.
 *
 * @param others may be none: then it is an ordinary part of the first
 */
export function sharedChild(first: Span, others: readonly Span[], ...part: Parameters<Span['child']>): Span {
  const shared = first.child(...part);
  for (const other of others) link(shared, other);
  return shared;
}

/** Links two pieces of work, so that either leads to the other. */
export function link(one: Span, other: Span): void {
  one.linkTo(other);
  other.linkTo(one);
}
