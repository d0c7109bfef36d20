import { hash } from 'node:crypto';
import { type Contact, isSameContact } from './contact.ts';
import { type LeadData, type OriginalFields, TEXT_FIELDS } from './lead-data.ts';
import { idFrom } from './new-id.ts';

/** What a creation said that was refused because the lead was open. */
export interface Enquiry extends OriginalFields {
  readonly time: Date;
  /** As it was typed; absent: exactly as the lead's was. */
  readonly contact?: Contact;
}

/** An enquiry with its id, by which consumers handle it once. */
export interface NamedEnquiry extends Enquiry {
  readonly id: string;
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
  lead: LeadData,
  { kept, keys }: KeptEnquiries,
  { contact, ...texts }: Enquiry & LeadData,
  idempotencyKey: string,
): KeptEnquiries | null {
  const saysSame = (said: Omit<Enquiry, 'time'>) =>
    TEXT_FIELDS.every((field) => said[field] === texts[field]) && isSameContact(said.contact ?? lead.contact, contact);
  if (isKeyKept({ keys }, idempotencyKey) || [lead, kept.at(-1) ?? lead].some(saysSame)) return null;
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

export const isKeyKept = ({ keys }: Pick<KeptEnquiries, 'keys'>, idempotencyKey: string): boolean =>
  keys.includes(keyHash(idempotencyKey));

/**
 * Returns the enquiries of a lead with their ids. An id is derived from the key that was kept with the enquiry, so it is the
 * same whichever release kept or rewrote it. Keys and enquiries end together; an enquiry without a key goes by its time.
 */
export const namedEnquiries = (leadId: string, { kept, keys }: KeptEnquiries): NamedEnquiry[] =>
  kept.map((enquiry, index) => {
    const key = keys.at(index - kept.length) ?? `${enquiry.time.getTime()} ${index}`;
    return { id: idFrom(`enquiry ${leadId} ${key}`), ...enquiry };
  });

/** The bytes of enquiries as JSON, which are more than those that a message takes for them. */
export const countBytes = (enquiries: readonly Enquiry[]): number => Buffer.byteLength(JSON.stringify(enquiries));
