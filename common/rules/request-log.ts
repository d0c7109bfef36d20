import { DATA_FIELDS } from './field-rules.ts';

/** Facts about the request log that gateways and cores share. */

/** The maximum number of requests that a gateway records in one call. */
export const MAX_RECORDED_REQUESTS = 500;

/** The contract's names for parts of a request. `(unknown)` stands for every other name. */
export const RECORDED_FIELDS = [
  ...DATA_FIELDS,
  'contact.type',
  'contact.value',
  'body',
  'id',
  'limit',
  'cursor',
  'Idempotency-Key',
  'Content-Type',
  'Content-Encoding',
  '(unknown)',
] as const;

export type RecordedField = (typeof RECORDED_FIELDS)[number];

/** Returns the names under which faulty fields are recorded. Callers choose names of unknown properties, which may be personal data. */
export const recordedFields = (names: readonly string[]): RecordedField[] => [
  ...new Set(names.map((name) => RECORDED_FIELDS.find((known) => known === name) ?? '(unknown)')),
];
