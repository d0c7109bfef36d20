import { createHash } from 'node:crypto';
import type { LeadCapture } from '../api-types.ts';
import { CAPTURE_RULES } from '../capture-rules.ts';
import { canonical, toText } from './capture-text.ts';

/**
 * Returns the key in its stored form, lower case.
 *
 * @throws TypeError when the service does not accept such a key
 */
export function checkedKey(idempotencyKey: string): string {
  const key = String(idempotencyKey).toLowerCase();
  if (!CAPTURE_RULES.sourceId?.every(([uuid]) => uuid.test(key)))
    throw new TypeError('The idempotency key must be a UUID with hyphens, of version 1 to 8.');
  return key;
}

const HOUR_MS = 60 * 60 * 1000;

/**
 * Derives the idempotency key of a form submission: equal for the same form and data within an hour, different when any
 * differs. Without the hour, all visits to a cached page would share one key.
 *
 * @param formKey a random string rendered into the form, such as a UUID; it is not stored. A form without one has the key '', as
 *   if all visitors had one cached page
 * @param submittedAt when the form was submitted. Default: now
 * @returns a UUID of version 8
 * @throws TypeError when the form key is not well-formed text, or the data cannot be stored
 */
export function keyFor(
  formKey: string | null | undefined,
  capture: LeadCapture,
  submittedAt: Date = new Date(),
): string {
  const page = formKey ?? '';
  if (typeof page !== 'string') throw new TypeError('The key of the form must be a string.');
  // UTF-8 would encode different lone surrogates alike.
  if (/\p{Surrogate}/u.test(page)) throw new TypeError('The key of the form must be well-formed Unicode.');
  const hour = Math.floor(submittedAt.getTime() / HOUR_MS);
  if (Number.isNaN(hour)) throw new TypeError('The time of the submission must be a valid date.');
  const bytes = createHash('sha256')
    .update([page, hour, canonical(JSON.parse(toText(capture)))].join('\0'))
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
