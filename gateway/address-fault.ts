import { BROKEN_ENCODING, invalidRequest, type Problem } from './problems.ts';

export const FRAGMENT = invalidRequest([], 'The address has a fragment.');

/** Returns what is wrong with the address of a request. */
export function addressFault(url: string): Problem | undefined {
  // Clients do not send a fragment; the router would treat it as a query.
  if (url.includes('#')) return FRAGMENT;
  try {
    // The router accepts a broken query and passes it on undecoded.
    decodeURIComponent(url);
    return undefined;
  } catch {
    return invalidRequest([], BROKEN_ENCODING);
  }
}
