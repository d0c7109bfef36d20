import { hash } from 'node:crypto';
import { ADDED_TEXTS, type LeadData } from './lead-data.ts';

/** A hash that tells whether two requests carry the same data, and the version of its computation. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
}

/**
 * Fingerprints live as long as their leads, so a different computation needs a different version. One of ADDED_TEXTS is
 * included, with its name, only if the lead has it. The fingerprints of other leads therefore stay the same.
 */
const FINGERPRINT_VERSION = 1;

/** Returns the fingerprint of a creation; equal for equal data. @rule 4.1.2 4.1.same-data */
export function computeFingerprint(lead: LeadData): Fingerprint {
  const { displayName, contact, sourceId, note } = lead;
  const added = ADDED_TEXTS.filter((field) => lead[field] !== null).map((field) => [field, lead[field]]);
  const data = JSON.stringify([displayName, contact.type, contact.value, sourceId, note, ...added]);
  return { version: FINGERPRINT_VERSION, sha256: hash('sha256', data, 'base64url') };
}

const SHA256_TEXT = /^[A-Za-z0-9_-]{43}$/;

/** Whether a stored fingerprint can be compared with others: it has a known version and a valid hash. */
export const isFingerprint = (read: { readonly [Part in keyof Fingerprint]: unknown }): read is Fingerprint =>
  read.version === FINGERPRINT_VERSION && typeof read.sha256 === 'string' && SHA256_TEXT.test(read.sha256);

export const sameData = (a: Fingerprint, b: Fingerprint): boolean => a.version === b.version && a.sha256 === b.sha256;
