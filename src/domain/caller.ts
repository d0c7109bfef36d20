/**
 * What callers of the core may do: `gateway`, what requests with an API key need; `read`, see leads, studios, keys and the audit;
 * `crm`, that, and everything with leads, keys and the directory; `operator`, the directory, seeing and revoking keys, and the audit, without leads.
 */
export const CALLER_ROLES = ['gateway', 'read', 'crm', 'operator'] as const;
export type CallerRole = (typeof CALLER_ROLES)[number];

/** A program that calls the core. */
export interface Caller {
  /** As the file of callers names it; null: callers are not told apart. */
  readonly name: string | null;
  readonly may: ReadonlySet<CallerRole>;
  /** The ids of the studios it has to do with; undefined: all. */
  readonly studios: ReadonlySet<string> | undefined;
  /** What it was known by: the beginning of a token's SHA-256, or `certificate`; null where its name is. */
  readonly credential: string | null;
  /** Aborted when it may no longer do what it may: what it has open is to end. */
  readonly withdrawn: AbortSignal;
}

/** Who presents the one token, or calls a core that asks for none. */
export const ANY_CALLER: Caller = {
  name: null,
  may: new Set(CALLER_ROLES),
  studios: undefined,
  credential: null,
  withdrawn: new AbortController().signal,
};
