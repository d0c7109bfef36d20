/**
 * The roles of callers. `gateway`: executes requests with API keys. `read`: reads leads, studios, keys and the audit log.
 * `feed`: pulls and acknowledges changes as one of the caller's consumers. `crm`: does everything except what only gateways
 * and operators do. `operator`: manages the directory, lists and revokes keys, and reads the audit log, but not leads.
 */
export const CALLER_ROLES = ['gateway', 'read', 'feed', 'crm', 'operator'] as const;
export type CallerRole = (typeof CALLER_ROLES)[number];

/** A program that calls the core. */
export interface Caller {
  /** The caller's name in the callers file; null: callers share one token, or need none. */
  readonly name: string | null;
  readonly may: ReadonlySet<CallerRole>;
  /** The ids of the studios it may access; undefined: all. */
  readonly studios: ReadonlySet<string> | undefined;
  /** The names of the consumers of the change feed that it may use with the role `feed`. */
  readonly consumers: ReadonlySet<string>;
  /** How it authenticated: the first digits of its token's SHA-256, or `certificate`; null if the name is null. */
  readonly credential: string | null;
  /** Aborts when the caller is removed or loses a role, studio or consumer. Its open streams then end. */
  readonly withdrawn: AbortSignal;
}

/** A caller that presents the shared CORE_TOKEN, or that calls a core without authentication. */
export const ANY_CALLER: Caller = {
  name: null,
  may: new Set(CALLER_ROLES),
  studios: undefined,
  consumers: new Set(),
  credential: null,
  withdrawn: new AbortController().signal,
};
