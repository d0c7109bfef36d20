import { hash } from 'node:crypto';
import type { Contact } from './contact.ts';

/** A hash that decides whether two requests carry the same data, and the version of its computation. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
}

/** The fields of a creation: texts as typed, ids in lower case, absent fields as null. */
export interface LeadData {
  readonly displayName: string;
  readonly contact: Contact;
  readonly sourceId: string | null;
  readonly note: string | null;
}

/** Fingerprints are stored as long as their leads, so a different computation needs a different version. */
const VERSION = 1;

/** Returns the fingerprint of a creation; equal for equal data. @rule 4.1.2 4.1.same-data */
export function fingerprintOf({ displayName, contact, sourceId, note }: LeadData): Fingerprint {
  const data = JSON.stringify([displayName, contact.type, contact.value, sourceId, note]);
  return { version: VERSION, sha256: hash('sha256', data, 'base64url') };
}

const SHA256_TEXT = /^[A-Za-z0-9_-]{43}$/;

/** Whether a stored fingerprint can be compared with others: it has a known version and a valid hash. */
export function isFingerprint({ version, sha256 }: { readonly [Part in keyof Fingerprint]: unknown }): boolean {
  return version === VERSION && typeof sha256 === 'string' && SHA256_TEXT.test(sha256);
}

/** Whether two creations carried the same data. */
export function sameData(a: Fingerprint, b: Fingerprint): boolean {
  return a.version === b.version && a.sha256 === b.sha256;
}
