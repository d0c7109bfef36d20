import { when } from '../history.ts';
import type { Oddness } from '../odd-records.ts';
import type { Simulation } from '../simulation.ts';

type Promised = Readonly<Record<string, string>>;

/** Only requests for the lead itself fail; its claims stay; the first read after a repair succeeds. */
const ODD_LEAD: Promised = {
  'it is read': '500 internal_error',
  'another is read': '200',
  'leads are listed, one a page': 'last | first',
  'the CRM lists leads': 'last,first',
  'its creation is repeated': '500 internal_error',
  'another creation has its contact': '409 integration_lead_already_open, odd 2',
  'it is moved': 'internal error',
  'it is read after the repair': '200',
  'leads are listed after the repair': 'last,odd 3,odd 2,odd 1,first',
};

/** Only the data that a repeated creation is compared with are odd: the lead itself is read as usual. */
const ODD_CREATION: Promised = {
  ...ODD_LEAD,
  'it is read': '200',
  'leads are listed, one a page': 'last | odd 3 | odd 2 | odd 1 | first',
  'the CRM lists leads': 'last,odd 3,odd 2,odd 1,first',
  'it is moved': 'moved',
};

/** The key is invalid, and counts towards the key limit until it is revoked. */
const ODD_KEY: Promised = {
  'it is tried': '401 integration_key_invalid',
  'another is tried': '200',
  'another is created': 'KEY_LIMIT_REACHED',
  'it is listed': 'expires in 1970',
  'it is replaced': 'internal error',
  'it is revoked': 'revoked',
  'another is created, then': 'made',
  'it is tried after the repair': '401 integration_key_invalid',
};

/** An unreadable value means suspended, until it is written again. */
const SUSPENDED: Promised = {
  'a lead is created': '402 subscription_suspended',
  'leads are listed': '402 subscription_suspended',
  'the CRM reads it': 'suspended',
  'sources are listed': '1',
  'it is put': 'put',
};

const OPEN: Promised = {
  'a lead is created': '201',
  'leads are listed': '200',
  'the CRM reads it': 'active',
  'sources are listed': '1',
  'a lead is created, then': '201',
  'leads are listed, then': '200',
  'the CRM reads it, then': 'active',
  'sources are listed, then': '1',
};

/** The promised responses, by what is odd. */
const PROMISED: Readonly<Record<Oddness, Promised>> = {
  // The original response does not depend on the current stage of the lead.
  'the state of a lead': { ...ODD_LEAD, 'its creation is repeated': 'the same answer' },
  'the data of a lead': ODD_LEAD,
  'the fingerprint of a lead': ODD_CREATION,
  'a key': ODD_KEY,
  'a scope of a key': { ...ODD_KEY, 'it is tried': '200', 'it is listed': 'expires in its time' },
  'the status of a studio': { ...OPEN, ...SUSPENDED },
  'the region of a studio': { ...OPEN, ...SUSPENDED },
  'the former regions of a studio': { ...OPEN, 'it is put': 'put' },
  'the role of a member': {
    ...OPEN,
    'a lead is created': '403 integration_issuer_forbidden',
    'leads are listed': '403 integration_issuer_forbidden',
  },
  'a source': { ...OPEN, 'a lead is created': '400 integration_source_invalid', 'sources are listed': '0' },
};

/** Compares the responses about records that no release of the product writes with the promises for each kind. */
export function oddRecordViolations({ history }: Simulation): string[] {
  return history.of('odd').flatMap(({ studioId, oddness, operation, result, span }) => {
    const promised = PROMISED[oddness][operation];
    return result === promised
      ? []
      : [`${when(span)}: in ${studioId}, with an odd record (${oddness}), ${operation}: ${result}, not ${promised}`];
  });
}
