import { hash } from 'node:crypto';
import { type LeadData, TEXT_FIELDS } from './lead-data.ts';

/** A hash that decides whether two requests carry the same data, and the version of its computation. */
export interface Fingerprint {
  readonly version: number;
  readonly sha256: string;
}

/** Fingerprints are stored as long as their leads, so a different computation needs a different version. */
const FINGERPRINT_VERSION = 1;

/** A text that was added since version 1 joins, with its name, only where it is given: older fingerprints stay the same. */
const ADDED_TEXTS = TEXT_FIELDS.filter((field) => !['displayName', 'sourceId', 'note'].includes(field));

/** Returns the fingerprint of a creation; equal for equal data. @rule 4.1.2 4.1.same-data */
export function fingerprintOf(lead: LeadData): Fingerprint {
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
