import { isCanonicalUuid, isCrmId } from '../../common/rules/field-rules.ts';
import { isHint } from '../../common/rules/key-secret.ts';
import { isRequestId, type KeyOperation, SCOPE_OF } from '../../common/rules/public-api.ts';
import { RECORDED_FIELDS, type RecordedField } from '../../common/rules/request-log.ts';
import { DAY_MS } from '../../common/units.ts';
import { idBelow, timeOfId } from './new-id.ts';

/** A request of a website at the public API, and its answer. It contains no personal text, only ids, codes and numbers. */
export interface LoggedRequest {
  readonly studioId: string;
  /** UUID in lower case that contains the time of arrival: see loggedId. */
  readonly id: string;
  readonly operation: KeyOperation;
  readonly apiKeyId: string;
  /** The hint of the presented secret. */
  readonly secretHint: string;
  /** Null: it was not answered. */
  readonly status: number | null;
  /** The problem code of the public API; null: it succeeded, or was not answered. */
  readonly code: string | null;
  readonly faultyFields: readonly RecordedField[];
  readonly requestId: string;
  /** The lead that was created or read, or the open one that prevented a creation. */
  readonly leadId: string | null;
  readonly replayed: boolean;
  readonly durationMs: number;
  /** The number of later requests that the same gateway answered but did not record. */
  readonly omitted: number;
}

/** The number of newest requests of a studio that are kept for a day. */
export const MAX_LOGGED_REQUESTS = 1000;

/** Returns an id below all requests that are still kept. */
export const firstLoggedId = (now: Date): string => idBelow(new Date(now.getTime() - DAY_MS));

/** How far the clock of a gateway may be ahead of that of a core; milliseconds. */
const MAX_AHEAD_MS = 3_600_000;

/** Whether a request arrived within the last day. A request from the future would not be removed until its time has come. */
export const isOfLastDay = ({ id }: LoggedRequest, now: Date): boolean =>
  id >= firstLoggedId(now) && timeOfId(id).getTime() <= now.getTime() + MAX_AHEAD_MS;

/**
 * Returns the id of a request: a version 7 UUID that stays the same when the batch is recorded again.
 *
 * @param batchId UUID in lower case
 * @param index position of the request in the batch, less than 4,096
 */
export function loggedId(time: Date, index: number, batchId: string): string {
  const count = `7${index.toString(16).padStart(3, '0')}`;
  return `${idBelow(time).slice(0, 14)}${count}-${batchId.slice(19)}`;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const textThat = (isValid: (text: string) => boolean) => (value: unknown) =>
  typeof value === 'string' && isValid(value);

const orNull = (isValid: (value: unknown) => boolean) => (value: unknown) => value === null || isValid(value);

const RULES: { readonly [Field in keyof LoggedRequest]: (value: unknown) => boolean } = {
  studioId: isCrmId,
  id: isCanonicalUuid,
  operation: textThat((text) => Object.hasOwn(SCOPE_OF, text)),
  apiKeyId: isCanonicalUuid,
  secretHint: isHint,
  status: orNull((status) => isCount(status) && (status as number) >= 200 && (status as number) <= 599),
  // A later release may have more codes.
  code: orNull(textThat((text) => /^[a-z_]{1,64}$/.test(text))),
  faultyFields: (names) => Array.isArray(names) && names.every((name) => RECORDED_FIELDS.includes(name)),
  requestId: isRequestId,
  leadId: orNull(isCanonicalUuid),
  replayed: (value) => typeof value === 'boolean',
  durationMs: isCount,
  omitted: isCount,
};

/** Returns the first field with an invalid value; undefined: all are valid. */
export const faultOfRequest = (
  read: {
    readonly [Field in keyof LoggedRequest]: unknown;
  },
): keyof LoggedRequest | undefined =>
  (Object.keys(RULES) as (keyof LoggedRequest)[]).find((field) => !RULES[field](read[field]));
