import { hash } from 'node:crypto';
import { type OriginalFields, TEXT_FIELDS } from './lead-data.ts';

/** What a creation said that was refused because the lead was open. */
export interface Enquiry extends OriginalFields {
  readonly time: Date;
}

/** The enquiries of a lead, oldest first, and the idempotency keys that it remembers. */
export interface KeptEnquiries {
  readonly kept: readonly Enquiry[];
  /** Hashes of the keys whose enquiries were kept last, also of those that were dropped since. */
  readonly keys: readonly string[];
}

/** The maximum number of enquiries of a lead, and of their bytes. The oldest are dropped. */
export const MAX_ENQUIRIES = 50;
export const MAX_ENQUIRY_BYTES = 32 * 1024;

/** The number of keys that are recognised when they are repeated; each takes 16 characters. */
export const MAX_ENQUIRY_KEYS = 500;

/**
 * Returns the enquiries of a lead with a further one; null: its key was kept already, or it says what the lead or the
 * enquiry before it says.
 *
 * @rule 4.1.enquiry
 */
export function withEnquiry(
  lead: OriginalFields,
  { kept, keys }: KeptEnquiries,
  enquiry: Enquiry,
  idempotencyKey: string,
): KeptEnquiries | null {
  const saysSame = (said: OriginalFields) => TEXT_FIELDS.every((field) => said[field] === enquiry[field]);
  if (isKeyKept({ keys }, idempotencyKey) || [lead, kept.at(-1) ?? lead].some(saysSame)) return null;
  const all = [...kept, enquiry].slice(-MAX_ENQUIRIES);
  let bytes = 0;
  const lastDropped = all.findLastIndex((each) => {
    bytes += bytesOf([each]);
    return bytes > MAX_ENQUIRY_BYTES;
  });
  return { kept: all.slice(lastDropped + 1), keys: [...keys, keyHash(idempotencyKey)].slice(-MAX_ENQUIRY_KEYS) };
}

const keyHash = (idempotencyKey: string): string => hash('sha256', idempotencyKey, 'base64url').slice(0, 16);

export const isKeyKept = ({ keys }: Pick<KeptEnquiries, 'keys'>, idempotencyKey: string): boolean =>
  keys.includes(keyHash(idempotencyKey));

/** The bytes of enquiries as JSON, which are more than those that a message takes for them. */
export const bytesOf = (enquiries: readonly Enquiry[]): number => Buffer.byteLength(JSON.stringify(enquiries));
