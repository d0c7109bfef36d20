// Generated from sdk/outcomes.json and the version in sdk/package.json. Do not edit.

/** Codes that prove that no attempt has written: the service looks up the idempotency key before it sends them. */
export const SETTLING_CODES: readonly string[] = [
  'integration_source_invalid',
  'integration_idempotency_conflict',
  'integration_lead_already_open',
];

/** Codes that prove it if they name the faulty fields: the same data would have been refused before as well. */
export const SETTLING_CODES_WITH_FIELDS: readonly string[] = ['integration_invalid_request'];

/** From this status on, a response is a failure: the request may have written, and the same request may succeed later. */
export const FAILING_FROM_STATUS = 500;

/** Codes of failures that have written nothing. */
export const CODES_WRITING_NOTHING: readonly string[] = ['integration_rate_unavailable'];

/** Statuses of refusals after which the same request may succeed later. */
export const TEMPORARY_STATUSES: readonly number[] = [408, 429];

/** Statuses that hold up all leads of an API key until somebody corrects the key or the studio. */
export const STATUSES_OF_THE_KEY: readonly number[] = [401, 402, 403];

/** How requests name the client; many firewalls refuse requests without a name. */
export const USER_AGENT = 'lead-intake-node/1.1.0';
