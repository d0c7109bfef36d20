import { AsyncLocalStorage } from 'node:async_hooks';

/** What is told of a piece of work. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A piece of work in a trace, from its beginning to its end. */
export interface Span {
  /** What a part of the trace in another process names as its parent: W3C `traceparent`. */
  readonly traceparent: string;
  /** Begins a part of it that somebody else does. */
  child(name: string, attributes: Attributes): Span;
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
