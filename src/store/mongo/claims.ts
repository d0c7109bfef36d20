import { KEY_RULE, type StoredClaims } from '../decisions/leads.ts';

/**
 * Returns claims in stored form. The keys that find a closed lead, and those of its former contacts, contain its id.
 * The unique index therefore needs no exception.
 */
export function claimsDocument(
  leadId: string,
  { contactKeys, regionCode, isOpen: areClaimed, formerKeys }: StoredClaims,
) {
  const own = contactKeys.map((key) => (areClaimed ? openClaim(key) : closedClaim(key, leadId)));
  const former = formerKeys.map((key) => `former:${key}:${leadId}`);
  return {
    openContactKey: [...own, ...former],
    contactRule: { version: KEY_RULE, region: regionCode },
  };
}

export const openClaim = (contactKey: string): string => `open:${contactKey}`;

export const closedClaim = (contactKey: string, leadId: string): string => `closed:${contactKey}:${leadId}`;

/** Returns conditions for all open and closed leads with a contact key; with `former`, for leads that had it before a correction. */
export const claimsWithKey = (contactKey: string, former?: 'former'): (string | RegExp)[] =>
  former ? [new RegExp(`^former:${contactKey}:`)] : [openClaim(contactKey), new RegExp(`^closed:${contactKey}:`)];

/** Returns the only claim of an erased lead. */
export const erasedClaim = (leadId: string): string => `closed:${leadId}`;

const keysIn = (claims: string | readonly string[], kind: RegExp): string[] =>
  [claims].flat().flatMap((claim) => (typeof claim === 'string' && kind.exec(claim)?.[1]) || []);

/** A contact key is a hash in base64url. */
export const contactKeysIn = (claims: string | readonly string[]) => keysIn(claims, /^(?:open|closed):([\w-]{43})/);
export const formerKeysIn = (claims: string | readonly string[]) => keysIn(claims, /^former:([\w-]{43}):/);
