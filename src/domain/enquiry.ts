import { hash } from 'node:crypto';
import { type Contact, isSameContact } from './contact.ts';
import { type LeadData, type OriginalFields, TEXT_FIELDS } from './lead-data.ts';
import { idFrom } from './new-id.ts';

/** The data of a creation that was refused because the contact had an open lead. */
export interface Enquiry extends OriginalFields {
  readonly time: Date;
  /** As typed; absent: the same as the lead's. */
  readonly contact?: Contact;
}

/** An enquiry with its id, by which consumers deduplicate it. */
export interface EnquiryWithId extends Enquiry {
  readonly id: string;
}

/** The enquiries of a lead, oldest first, and the idempotency keys that it remembers. */
export interface StoredEnquiries {
  readonly kept: readonly Enquiry[];
  /** Hashes of the keys of the latest enquiries, including dropped ones. */
  readonly keys: readonly string[];
}

/** The maximum number of enquiries of a lead, and of their bytes. The oldest are dropped. */
export const MAX_ENQUIRIES = 50;
export const MAX_ENQUIRY_BYTES = 32 * 1024;

/** The number of idempotency keys that a lead remembers; each takes 16 characters. */
export const MAX_ENQUIRY_KEYS = 500;

/**
 * Returns the enquiries of a lead with a further one. Null: its key is known, or its data equals the lead's or the last
 * enquiry's.
 *
 * @rule 4.1.enquiry
 */
export function withEnquiry(
  lead: LeadData,
  { kept, keys }: StoredEnquiries,
  { contact, ...texts }: Enquiry & LeadData,
  idempotencyKey: string,
): StoredEnquiries | null {
  const hasSameTexts = (stored: OriginalFields & { readonly contact?: Contact }) =>
    TEXT_FIELDS.every((field) => stored[field] === texts[field]) &&
    isSameContact(stored.contact ?? lead.contact, contact);
  if (hasEnquiryKey(keys, idempotencyKey) || [lead, kept.at(-1) ?? lead].some(hasSameTexts)) return null;
  const enquiry = isSameContact(lead.contact, contact) ? texts : { ...texts, contact };
  const all = [...kept, enquiry].slice(-MAX_ENQUIRIES);
  let bytes = 0;
  const lastDropped = all.findLastIndex((each) => {
    bytes += countBytes([each]);
    return bytes > MAX_ENQUIRY_BYTES;
  });
  return { kept: all.slice(lastDropped + 1), keys: [...keys, keyHash(idempotencyKey)].slice(-MAX_ENQUIRY_KEYS) };
}

const keyHash = (idempotencyKey: string): string => hash('sha256', idempotencyKey, 'base64url').slice(0, 16);

export const hasEnquiryKey = (keys: readonly string[], idempotencyKey: string): boolean =>
  keys.includes(keyHash(idempotencyKey));

/**
 * Returns the enquiries of a lead with their ids. An id derives from the idempotency key, so every release computes the
 * same one. The last key belongs to the last enquiry, and so on backwards. An enquiry without a key uses its time.
 */
export const enquiriesWithIds = (leadId: string, { kept, keys }: StoredEnquiries): EnquiryWithId[] =>
  kept.map((enquiry, index) => {
    const key = keys.at(index - kept.length) ?? `${enquiry.time.getTime()} ${index}`;
    return { id: idFrom(`enquiry ${leadId} ${key}`), ...enquiry };
  });

/** Returns the size of enquiries as JSON, which is more than they take in a message. */
export const countBytes = (enquiries: readonly Enquiry[]): number => Buffer.byteLength(JSON.stringify(enquiries));
