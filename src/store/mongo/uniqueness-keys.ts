import { KEY_RULE, type StoredKeys } from '../decisions/leads.ts';

/**
 * Returns uniqueness keys in stored form. The keys that find a closed lead, and the keys of former contacts, contain the
 * lead's id, so the unique index needs no exception.
 */
export function keysDocument(leadId: string, { contactKeys, regionCode, isOpen, formerKeys }: StoredKeys) {
  const current = contactKeys.map((key) => (isOpen ? openKey(key) : closedKey(key, leadId)));
  const former = formerKeys.map((key) => `former:${key}:${leadId}`);
  return {
    openContactKey: [...current, ...former],
    contactRule: { version: KEY_RULE, region: regionCode },
  };
}

export const openKey = (contactKey: string): string => `open:${contactKey}`;

export const closedKey = (contactKey: string, leadId: string): string => `closed:${contactKey}:${leadId}`;

/** Returns conditions for all open and closed leads with a contact key; with `former`, for leads that had it before a correction. */
export const conditionsForKey = (contactKey: string, former?: 'former'): (string | RegExp)[] =>
  former ? [new RegExp(`^former:${contactKey}:`)] : [openKey(contactKey), new RegExp(`^closed:${contactKey}:`)];

/** Returns the only key of an erased lead. */
export const erasedKey = (leadId: string): string => `closed:${leadId}`;

const keysIn = (keys: string | readonly string[], kind: RegExp): string[] =>
  [keys].flat().flatMap((key) => (typeof key === 'string' && kind.exec(key)?.[1]) || []);

/** A contact key is a hash in base64url. */
export const contactKeysIn = (keys: string | readonly string[]) => keysIn(keys, /^(?:open|closed):([\w-]{43})/);
export const formerKeysIn = (keys: string | readonly string[]) => keysIn(keys, /^former:([\w-]{43}):/);
