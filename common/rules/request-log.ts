import { DATA_FIELDS } from './field-rules.ts';

/** What gateways and cores must have alike about the log of requests. */

/** The maximum number of requests that a gateway records at a time. */
export const MAX_RECORDED_REQUESTS = 500;

/** The names of the contract for parts of a request, one of which stands for every other name. */
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

/** Returns the names by which faulty fields are recorded. Callers choose those of unknown properties, which may be data. */
export const recordedFields = (names: readonly string[]): RecordedField[] => [
  ...new Set(names.map((name) => RECORDED_FIELDS.find((known) => known === name) ?? '(unknown)')),
];
