import { hash } from 'node:crypto';
import type { OpenClaims } from './contact.ts';
import type { LeadData } from './lead.ts';

/** A hash that decides whether two requests carry the same data, and the version of its computation. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
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
export const isFingerprint = (read: { readonly [Part in keyof Fingerprint]: unknown }): read is Fingerprint =>
  read.version === VERSION && typeof read.sha256 === 'string' && SHA256_TEXT.test(read.sha256);

export const sameData = (a: Fingerprint, b: Fingerprint): boolean => a.version === b.version && a.sha256 === b.sha256;

/** The unique keys of a lead, stored with it in the same write. @rule 4.1.memory 4.1.success */
export interface LeadClaims extends OpenClaims {
  /** Identifies the creation on a retry; a UUID in lower case. */
  readonly idempotencyKey: string;
  /** Identifies the data that a retry must repeat. */
  readonly fingerprint: Fingerprint;
}
