import type { LeadCapture } from '../contract.ts';

/** As much as MariaDB's TEXT holds, which the outboxes of other languages may have the table in; bytes of UTF-8. */
const MAX_TEXT_BYTES = 65_535;

/** Half of a character: it has no form in UTF-8. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * What is stored of a lead. Whether the service takes it is for the service to say.
 *
 * @throws TypeError when it is no object that JSON can hold
 */
export function textOf(capture: LeadCapture): string {
  const text = JSON.stringify(capture, (_, value) => {
    if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
      throw new TypeError('The data of the lead has text that is not well-formed Unicode.');
    }
    return value;
  });
  if (captureIn(text) === null) throw new TypeError('The data of a lead must be an object.');
  if (Buffer.byteLength(text) > MAX_TEXT_BYTES) {
    throw new TypeError(`The data of a lead must not be longer than ${MAX_TEXT_BYTES} bytes of JSON.`);
  }
  return text;
}

/** What was stored; null when it is nothing, or no object. */
export function captureIn(text: string | null | undefined): LeadCapture | null {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return value instanceof Object && !Array.isArray(value) ? (value as LeadCapture) : null;
  } catch {
    return null;
  }
}

/** Whether two texts are the same data to the service, whoever wrote them in whatever order. */
export function isSameData(one: string, other: string): boolean {
  return canonical(JSON.parse(one)) === canonical(JSON.parse(other));
}

/** The same text for the same data: members in order, null as if it were left out. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (!(inner instanceof Object) || Array.isArray(inner)) return inner;
    const members = Object.entries(inner).filter(([, member]) => member !== null);
    return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
