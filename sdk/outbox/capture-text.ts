import type { LeadCapture } from '../api-types.ts';
import { asWritten } from '../as-written.ts';

/** The size of MariaDB's TEXT, which the outboxes of other languages use; bytes. */
const MAX_TEXT_BYTES = 65_535;

/** Half of a surrogate pair: it cannot be encoded in UTF-8. */
export const LONE_SURROGATE = /\p{Surrogate}/u;

/** Escapes characters outside ASCII, so that a database of any encoding can store the text. */
const inAscii = (json: string): string =>
  json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/**
 * Serializes a lead for the table, without what only the form has added. Validation is left to the service.
 *
 * @throws TypeError when the capture is not an object that JSON can represent
 */
export function toText(capture: LeadCapture): string {
  const text = JSON.stringify(capture, (_, value) => {
    if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
      throw new TypeError('The data of the lead has text that is not well-formed Unicode.');
    }
    return value;
  });
  const data = captureIn(text);
  if (data === null) throw new TypeError('The data of a lead must be an object.');
  const stored = inAscii(JSON.stringify(asWritten(data)));
  if (stored.length > MAX_TEXT_BYTES) {
    throw new TypeError(`The data of a lead must not be longer than ${MAX_TEXT_BYTES} bytes of JSON.`);
  }
  return stored;
}

/** Parses stored data; null when it is missing, not UTF-8, or not an object. */
export function captureIn(stored: unknown): LeadCapture | null {
  try {
    const text =
      stored instanceof Uint8Array ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(stored) : stored;
    const value: unknown = JSON.parse(String(text));
    return value instanceof Object && !Array.isArray(value) ? (value as LeadCapture) : null;
  } catch {
    return null;
  }
}

/** Returns whether stored data and a text are the same data of a visitor, independent of the order of members. */
export function isSameData(stored: LeadCapture | null, text: string): boolean {
  return stored !== null && canonical(stored) === canonical(JSON.parse(text));
}

/** Returns equal text for equal data, in all languages: members sorted, null members left out. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (!(inner instanceof Object) || Array.isArray(inner)) return inner;
    const members = Object.entries(inner).filter(([, member]) => member !== null);
    return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
