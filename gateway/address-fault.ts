import { invalidRequest, type Problem } from './problems.ts';

export const BROKEN_ENCODING = invalidRequest([], 'The address has broken percent-encoding.');
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
    return BROKEN_ENCODING;
  }
}
