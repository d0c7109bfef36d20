import { LEADS_PATH } from '../lead-paths.ts';
import { PROBLEM_MEDIA_TYPE, PROBLEMS, type Problem, type ProblemCode, problemBody } from '../problems.ts';
import { problemDetailsSchema } from '../schemas.ts';
import { LEAD, REQUEST_ID } from './examples.ts';

const HEADERS = {
  'X-Request-Id': {
    description: 'Names the request in our logs: your own name for it, else a new one.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,128}$' },
    example: REQUEST_ID,
  },
  'Cache-Control': { description: 'No answer may be kept.', schema: { type: 'string', const: 'no-store' } },
  RateLimit: {
    description:
      'Requests that are left in the window (`r`), and seconds to its end (`t`): of the key or of its studio, whichever has fewer left.',
    schema: { type: 'string', pattern: '^"default";r=\\d+;t=[1-9]\\d*$' },
    example: '"default";r=599;t=60',
  },
  'RateLimit-Policy': {
    description: 'Requests (`q`) that the key, or its studio with all keys, has per window of so many seconds (`w`).',
    schema: { type: 'string', pattern: '^"default";q=[1-9]\\d*;w=[1-9]\\d*$' },
    example: '"default";q=600;w=60',
  },
  Location: {
    description: 'Where the lead is to be read: a reference relative to the address of the request.',
    schema: { type: 'string', pattern: '^/.+/[0-9a-f-]{36}$' },
    example: `${LEADS_PATH}/${LEAD.id}`,
  },
  'Idempotent-Replayed': {
    description: 'There when an earlier request had created the lead.',
    schema: { type: 'string', const: 'true' },
  },
  Link: {
    description: 'The open lead; there when the key has the scope `leads.read`.',
    schema: { type: 'string', pattern: '^<[^>]+>; rel="existing-lead"$' },
  },
  'Retry-After': { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer', minimum: 1 } },
  'WWW-Authenticate': { description: 'The scheme to authenticate by.', schema: { type: 'string', const: 'Bearer' } },
} as const;

type HeaderName = keyof typeof HEADERS;

/** Headers that an answer always carries, and those that it may carry besides. */
interface HeaderNames {
  readonly always?: readonly HeaderName[];
  readonly sometimes?: readonly HeaderName[];
}

const EVERYWHERE: readonly HeaderName[] = ['X-Request-Id', 'Cache-Control'];

/** Of the answer to a request that was counted. */
const COUNTED: readonly HeaderName[] = ['RateLimit', 'RateLimit-Policy'];

/** What an error carries besides. Some are found before the request is counted, or after. */
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

/** The answer to a request that was served. */
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
 * The answer to a request that meets one of these errors, which all have the same status. There is an example of each code. All
 * errors have one schema: generators make a type of their own of whatever is told of one status alone.
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

/** The headers of a status, which can have several answers: what all of them always carry is required. */
function headersOf(answers: readonly HeaderNames[]): object {
  const names = answers.flatMap(({ always = [], sometimes = [] }) => [...EVERYWHERE, ...always, ...sometimes]);
  const required = (name: HeaderName) => answers.every(({ always = [] }) => [...EVERYWHERE, ...always].includes(name));
  return Object.fromEntries(names.map((name) => [name, { ...HEADERS[name], required: required(name) }]));
}
