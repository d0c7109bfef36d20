import { findKind, PROBLEM_MEDIA_TYPE, PROBLEMS, type Problem, problemBody } from '../problems.ts';
import { LEADS_PATH, problemDetailsSchema } from '../routes/schemas.ts';
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

/** Headers that a response always has, and headers that it may have. */
interface HeaderNames {
  readonly always?: readonly HeaderName[];
  readonly sometimes?: readonly HeaderName[];
}

const COMMON: readonly HeaderName[] = ['X-Request-Id', 'Cache-Control'];

/** The headers of responses to counted requests. */
const COUNTED: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy'];

export function success(
  description: string,
  schema: object,
  example: unknown,
  { always = [], sometimes = [], ...more }: HeaderNames & { readonly links?: object } = {},
): object {
  return {
    description,
    headers: describeHeaders([{ always: [...COUNTED, ...always], sometimes }]),
    content: { 'application/json': { schema, example } },
    ...more,
  };
}

/**
 * Describes the response for errors that share a status, with an example of each code. All errors share one schema, because client
 * generators create a separate type for each schema of a status.
 */
export function failure(publicUrl: string, problems: readonly Problem[]): object {
  const linked = ({ code }: Problem) => `[\`${code}\`](${publicUrl}/docs/problems/${code}): ${PROBLEMS[code].title}`;
  const example = (problem: Problem) => ({
    summary: PROBLEMS[problem.code].title,
    value: JSON.parse(problemBody(problem, REQUEST_ID, publicUrl)),
  });
  return {
    description: problems.map(linked).join('\n\n'),
    headers: describeHeaders(problems.map(headersOfProblem)),
    content: {
      [PROBLEM_MEDIA_TYPE]: {
        schema: problemDetailsSchema,
        examples: Object.fromEntries(problems.map((problem) => [problem.code, example(problem)])),
      },
    },
  };
}

function headersOfProblem({ code, headers }: Problem): HeaderNames {
  const { counted } = findKind(code);
  const given = Object.keys(HEADERS).filter((name) => name.toLowerCase() in headers) as HeaderName[];
  const link: HeaderName[] = code === 'integration_lead_already_open' ? ['Link'] : [];
  return {
    always: [...(counted === 'always' ? COUNTED : []), ...given],
    sometimes: [...(counted === 'sometimes' ? COUNTED : []), ...link],
  };
}

/** Returns the headers of all responses with a status. A header that every response has is required. */
function describeHeaders(answers: readonly HeaderNames[]): object {
  const names = answers.flatMap(({ always = [], sometimes = [] }) => [...COMMON, ...always, ...sometimes]);
  const required = (name: HeaderName) => answers.every(({ always = [] }) => [...COMMON, ...always].includes(name));
  return Object.fromEntries(names.map((name) => [name, { ...HEADERS[name], required: required(name) }]));
}
