import { AsyncLocalStorage } from 'node:async_hooks';

/** Attributes of a span. Undefined ones are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  /** The W3C `traceparent` that other processes use to attach their spans to this one. */
  readonly traceparent: string;
  /** The id of its trace, 32 hexadecimal digits. */
  readonly traceId: string;
  /** Whether its trace is sampled. Otherwise nobody needs its attributes. */
  readonly isSent: boolean;
  /** Starts a child span for work of another system, such as a database. */
  child(name: string, attributes: Attributes): Span;
  end(outcome: { readonly failed: boolean; readonly attributes?: Attributes }): void;
}

export interface Tracer {
  /** Starts the span of a request. @param traceparent the caller's; an invalid or missing one starts a new trace */
  begin(name: string, traceparent: string | undefined): Span;
  dropped(): number;
  /** Sends the remaining spans, and gives up after TRACES_CLOSE_MS. */
  close(): Promise<void>;
}

/** The span of the current request. */
export const currentSpan = new AsyncLocalStorage<Span>();
