import { hash } from 'node:crypto';

/**
 * Returns the identity of a caller's request: its id for one operation on one record, as a UUID. The same id names another
 * request elsewhere, so that a caller that reuses it loses no change.
 *
 * @param requestId undefined: the caller gave none, and so has the request no identity
 * @param what the operation, and the ids of the record
 */
export function requestIdentity(requestId: string | undefined, ...what: readonly string[]): string | undefined {
  if (requestId === undefined) return undefined;
  const digest = hash('sha256', JSON.stringify([requestId.toLowerCase(), ...what]), 'hex');
  return digest.slice(0, 32).replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
