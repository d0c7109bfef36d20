// Generated from sdk/generate-outcomes.ts and the version in sdk/package.json. Do not edit.

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

/** How reasons of an outbox begin that hold up all leads until somebody corrects the key, the studio or the address. */
export const CONFIGURATION_REASONS: readonly string[] = ['401 ', '402 ', '403 ', '404 ', '405 '];

/** How reasons of an outbox begin until whose next attempt no lead is sent; the last one is of an intermediary. */
export const PAUSE_REASONS: readonly string[] = ['429 ', '503 ', 'wait'];

/** The condition of rows of an outbox that a person may send again or discard: no one is known to have their data. */
export const SQL_WITH_DATA = "(state IN ('waiting', 'refused') OR capture IS NOT NULL)";

/** Why an outbox keeps the note of an already open lead. */
export const REASON_NOT_TAKEN = 'already open: the contact has an open lead, and no one has got this note';

/** Why an outbox keeps a lead whose first attempt was answered with an earlier one. */
export const REASON_REPLAYED = 'replayed: its key had been used before, and no one may have got this message';

/** Why an outbox refuses a row. */
export const REASON_UNREADABLE = 'unreadable: the data in the table is not a JSON object';

/** How requests name the client; many firewalls refuse requests without a name. */
export const USER_AGENT = 'lead-intake-node/1.1.0';
