import { captureFault, uuidFault } from '../../common/rules/field-rules.ts';
import { PAGE_SIZE, type PublicLead } from '../../common/rules/public-api.ts';
import { type FaultyField, invalidRequest, Problem, type ProblemCode } from '../problems.ts';

export const IDEMPOTENCY_KEY = '5f0f9b1c-6c1e-4c55-9a5e-3d2b7f1c8a10';

/** The minimal data of a creation. */
export const CAPTURE = {
  displayName: 'Grace Hopper',
  contact: { type: 'email', value: 'grace@example.com' },
} as const;

/** A creation with all optional data. */
export const FULL_CAPTURE = {
  displayName: 'Alan Turing',
  contact: { type: 'phone', value: '+49 30 123456' },
  sourceId: '019bb1a5-ed00-7b1d-9c40-5d1e8a7b3f22',
  note: 'Asks for a trial on Saturday morning.',
} as const;

/** The lead created from CAPTURE. */
export const LEAD = {
  id: '019cade2-11c0-7e52-b6a4-91f0c3d7e845',
  displayName: CAPTURE.displayName,
  stage: 'new',
  sourceId: null,
  note: null,
  createdAt: '2026-03-02T09:30:00.000Z',
  updatedAt: '2026-03-02T09:30:00.000Z',
} as const satisfies PublicLead;

/** The lead created from FULL_CAPTURE, as it is a few days later. */
export const OLDER_LEAD = {
  id: '019c9fd8-d058-7a94-8e13-2b6f4c8d9071',
  displayName: FULL_CAPTURE.displayName,
  stage: 'trial_booked',
  sourceId: FULL_CAPTURE.sourceId,
  note: FULL_CAPTURE.note,
  createdAt: '2026-02-27T16:05:12.408Z',
  updatedAt: '2026-03-01T08:12:45.120Z',
} as const satisfies PublicLead;

/** The cursor of the page after that lead. */
export const CURSOR = 'AQGcn9jQWHqUjhMrb0yNkHFnSxqHMt8q9KHFVL2kF_yY';

export const REQUEST_ID = 'a64eb2e4-de20-4668-8c39-9c91e0a58437';

/** The problem of an invalid request, by operation. */
export const INVALID = {
  createLead: invalid({
    displayName: captureFault('displayName', ''),
    'contact.value': captureFault('email', 'grace'),
  }),
  getLead: invalid({ id: uuidFault('42') }),
  listLeads: invalid({ limit: `must be given once, as a whole number from 1 to ${PAGE_SIZE.max}` }),
} as const;

/** Examples with a detail, fields, or headers that vary. */
const EXAMPLES: Partial<Record<ProblemCode, Problem>> = {
  integration_invalid_request: INVALID.createLead,
  integration_rate_limited: new Problem('integration_rate_limited', {
    detail: "The key's 600 requests per 60 s are used up; wait 17 s.",
    headers: { 'retry-after': '17' },
  }),
  method_not_allowed: new Problem('method_not_allowed', { headers: { allow: 'GET, POST' } }),
};

export const toExample = (code: ProblemCode): Problem => EXAMPLES[code] ?? new Problem(code);

function invalid(faults: Readonly<Record<string, string | undefined>>): Problem {
  return invalidRequest(
    Object.entries(faults).map(([field, message]) => ({
      field: field as FaultyField['field'],
      message: message ?? '',
    })),
  );
}
