import { hash } from 'node:crypto';
import type { Contact } from './contact.ts';

/** What "the same data" is measured by: a hash, and the version of the way to make it. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
}

/** Everything a caller says of a lead; texts as typed, ids in lower case, what is absent as null. */
export interface LeadData {
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: string | null;
  readonly note: string | null;
}

/** The hash is kept as long as the lead, so another way to make it needs another version. */
const VERSION = 1;

/** The fingerprint of a capture; equal for equal data. @rule 4.1.2 4.1.same-data */
export function fingerprintOf({ displayName, contact, sourceId, note }: LeadData): Fingerprint {
  const data = JSON.stringify([displayName, contact.type, contact.value, sourceId, note]);
  return { version: VERSION, sha256: hash('sha256', data, 'base64url') };
}

const SHA256_TEXT = /^[A-Za-z0-9_-]{43}$/;

/** Whether a fingerprint is one that others can be compared with: what is made in an unknown way tells nothing of the data. */
export function isFingerprint({ version, sha256 }: { readonly [Part in keyof Fingerprint]: unknown }): boolean {
  return version === VERSION && typeof sha256 === 'string' && SHA256_TEXT.test(sha256);
}

/** Whether two captures carried the same data. */
export function sameData(a: Fingerprint, b: Fingerprint): boolean {
  return a.version === b.version && a.sha256 === b.sha256;
}
