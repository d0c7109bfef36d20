import { asWritten } from '../as-written.ts';
import type { LeadCapture } from '../contract.ts';

/** The size of MariaDB's TEXT, which the outboxes of other languages use; bytes of UTF-8. */
const MAX_TEXT_BYTES = 65_535;

/** Half of a surrogate pair: it cannot be encoded in UTF-8. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Serializes a lead for the table, without what only the form has added. Validation is left to the service.
 *
 * @throws TypeError when the capture is not an object that JSON can represent
 */
export function textOf(capture: LeadCapture): string {
  const text = JSON.stringify(capture, (_, value) => {
    if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
      throw new TypeError('The data of the lead has text that is not well-formed Unicode.');
    }
    return value;
  });
  const data = captureIn(text);
  if (data === null) throw new TypeError('The data of a lead must be an object.');
  const stored = JSON.stringify(asWritten(data));
  if (Buffer.byteLength(stored) > MAX_TEXT_BYTES) {
    throw new TypeError(`The data of a lead must not be longer than ${MAX_TEXT_BYTES} bytes of JSON.`);
  }
  return stored;
}

/** Parses stored data; null when it is missing or not an object. */
export function captureIn(text: string | null | undefined): LeadCapture | null {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return value instanceof Object && !Array.isArray(value) ? (value as LeadCapture) : null;
  } catch {
    return null;
  }
}

/** Whether two texts are the same data of a visitor, independent of the order of members. Release 1.1 stored it as posted. */
export function isSameData(one: string, other: string): boolean {
  const [first, second] = [JSON.parse(one), JSON.parse(other)];
  return canonical(asWritten(first)) === canonical(asWritten(second));
}

/** Returns equal text for equal data, in all languages: members sorted, null members left out. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (!(inner instanceof Object) || Array.isArray(inner)) return inner;
    const members = Object.entries(inner).filter(([, member]) => member !== null);
    return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
