import { LEADS_PATH, problemDetailsSchema } from '../operations/schemas.ts';
import { PROBLEM_MEDIA_TYPE, PROBLEMS, type Problem, type ProblemCode, problemBody } from '../problems.ts';
import { LEAD, REQUEST_ID } from './examples.ts';

const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request in the logs of the service: yours if it is valid, else a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    example: REQUEST_ID,
  },
  'Cache-Control': { description: 'Responses must not be cached.', schema: { type: 'string', const: 'no-store' } },
  RateLimit: {
    description:
      'Requests left in the window (`r`) and seconds to its end (`t`), for the key or its studio, whichever has fewer left.',
    schema: { type: 'string', pattern: '^"default";r=\\d+;t=[1-9]\\d*$' },
    example: '"default";r=599;t=60',
  },
  'RateLimit-Policy': {
    description: 'Requests (`q`) per window of `w` seconds, for the key, or for all keys of its studio.',
    schema: { type: 'string', pattern: '^"default";q=[1-9]\\d*;w=[1-9]\\d*$' },
    example: '"default";q=600;w=60',
  },
  Location: {
    description: 'The address of the lead, relative to that of the request.',
    schema: { type: 'string', pattern: '^/.+/[0-9a-f-]{36}$' },
    example: `${LEADS_PATH}/${LEAD.id}`,
  },
  'Idempotent-Replayed': {
    description: 'Present when an earlier request had created the lead.',
    schema: { type: 'string', const: 'true' },
  },
  Link: {
    description: 'The address of the open lead; present when the key has the scope `leads.read`.',
    schema: { type: 'string', pattern: '^<[^>]+>; rel="existing-lead"$' },
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer', minimum: 1 } },
  'WWW-Authenticate': { description: 'The authentication scheme.', schema: { type: 'string', const: 'Bearer' } },
} as const;

type HeaderName = keyof typeof HEADERS;

/** Headers that a response always has, and those that it may have. */
interface HeaderNames {
  readonly always?: readonly HeaderName[];
  readonly sometimes?: readonly HeaderName[];
}

const COMMON: readonly HeaderName[] = ['X-Request-Id', 'Cache-Control'];

/** The headers of responses to counted requests. */
const COUNTED: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy'];

/** The additional headers of each error. Some errors occur both before and after a request is counted. */
const PROBLEM_HEADERS: Partial<Record<ProblemCode, HeaderNames>> = {
  integration_invalid_request: { sometimes: COUNTED },
  integration_source_invalid: { always: COUNTED },
  integration_key_invalid: { always: ['WWW-Authenticate'] },
  integration_lead_not_found: { always: COUNTED },
  integration_idempotency_conflict: { always: COUNTED },
  integration_lead_already_open: { always: COUNTED, sometimes: ['Link'] },
  integration_rate_limited: { always: [...COUNTED, 'Retry-After'] },
  integration_rate_unavailable: { always: ['Retry-After'] },
  internal_error: { sometimes: COUNTED },
  integration_unavailable: { always: ['Retry-After'], sometimes: COUNTED },
};

/** Describes a successful response. */
export function success(
  description: string,
  schema: object,
  example: unknown,
  { always = [], sometimes = [], ...more }: HeaderNames & { readonly links?: object } = {},
): object {
  return {
    description,
    headers: headersOf([{ always: [...COUNTED, ...always], sometimes }]),
    content: { 'application/json': { schema, example } },
    ...more,
  };
}

/**
 * Describes the response for these errors, which have the same status, with an example of each code. All errors share
 * one schema, because client generators create a separate type for each schema of a status.
 */
export function failure(publicUrl: string, problems: readonly [Problem, ...Problem[]]): object {
  const codes = problems.map(({ code }) => code);
  const linked = (code: ProblemCode) => `[\`${code}\`](${publicUrl}/docs/problems/${code}): ${PROBLEMS[code].title}`;
  const example = (problem: Problem) => ({
    summary: PROBLEMS[problem.code].title,
    value: JSON.parse(problemBody(problem, REQUEST_ID, publicUrl)),
  });
  return {
    description: codes.map(linked).join('\n\n'),
    headers: headersOf(codes.map((code) => PROBLEM_HEADERS[code] ?? {})),
    content: {
      [PROBLEM_MEDIA_TYPE]: {
        schema: problemDetailsSchema,
        examples: Object.fromEntries(problems.map((problem) => [problem.code, example(problem)])),
      },
    },
  };
}

/** Returns the headers of a status with several responses; those that all of them always have are required. */
function headersOf(answers: readonly HeaderNames[]): object {
  const names = answers.flatMap(({ always = [], sometimes = [] }) => [...COMMON, ...always, ...sometimes]);
  const required = (name: HeaderName) => answers.every(({ always = [] }) => [...COMMON, ...always].includes(name));
  return Object.fromEntries(names.map((name) => [name, { ...HEADERS[name], required: required(name) }]));
}
