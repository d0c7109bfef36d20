import { createHash } from 'node:crypto';
import type { LeadCapture } from '../contract.ts';
import { textOf } from './capture-text.ts';

/** What the service takes: versions 1 to 8 of the standard variant, and the two that are all zeros and all ones. */
const UUID =
  /^(?:[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}|0{8}(?:-0{4}){3}-0{12}|f{8}(?:-f{4}){3}-f{12})$/;

/**
 * A key as the table has it.
 *
 * @throws TypeError when the service takes no such key
 */
export function checkedKey(idempotencyKey: string): string {
  const key = String(idempotencyKey).toLowerCase();
  if (!UUID.test(key))
    throw new TypeError('The idempotency key must be a UUID with hyphens, of a version from 1 to 8.');
  return key;
}

/**
 * The key of a lead that a form has sent: the same for the same form with the same data, another one when either differs.
 *
 * @param formKey a random text that was sent out with the form, such as a UUID; it is stored nowhere
 * @returns a UUID of version 8
 * @throws TypeError when there is no form key, or the data cannot be stored
 */
export function keyFor(formKey: string, capture: LeadCapture): string {
  if (typeof formKey !== 'string' || formKey === '') throw new TypeError('The key of the form must be a text.');
  const bytes = createHash('sha256')
    .update(`${formKey}\0${textOf(capture)}`)
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
