import type { ProblemDetails } from './api-types.ts';
import { isNotSent, isOfEncoding, UnreadEncoding } from './not-sent.ts';
import {
  CODES_WRITING_NOTHING,
  FAILING_FROM_STATUS,
  FIELDS_NOT_OF_DATA,
  PROBLEM_CODES,
  SETTLING_CODES,
  SETTLING_CODES_WITH_FIELDS,
  TEMPORARY_STATUSES,
} from './outcomes.ts';
import { isOf } from './repeated.ts';

/** The maximum size of a decompressed response; bytes. Far more than the service's longest response. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/**
 * Keeps Next.js 13 and 14 from answering reads from their cache. Old versions of workerd, whose `Request` has no `cache`, refuse the
 * option.
 */
const UNCACHED: RequestInit = 'cache' in Request.prototype ? { cache: 'no-store' } : {};

/** A request to the API. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** The absolute URL. */
  readonly url: string;
  readonly headers: Headers;
  readonly body?: string;
  /** Whether the body of a successful response is one lead or a list of leads. */
  readonly expects: 'lead' | 'leads';
  /** The data of a creation, which the lead in its response repeats. */
  readonly capture?: Readonly<Record<string, unknown>> | null | undefined;
}

/** The outcome of sending a request once. */
export type Attempt =
  | { readonly kind: 'answer'; readonly body: unknown; readonly headers: Headers }
  | { readonly kind: 'problem'; readonly problem: ProblemDetails; readonly headers: Headers }
  /** `status` and `headers` come from an intermediary such as a proxy, not from the service. */
  | { readonly kind: 'none'; readonly cause: unknown; readonly status?: number; readonly headers?: Headers };

/** Sends a request once. Never throws: a failure becomes the `cause` of an attempt of kind `none`. */
export async function attempt(
  { url, expects, capture, ...request }: ApiRequest,
  send: typeof fetch,
  signal: AbortSignal,
): Promise<Attempt> {
  let response: Response | undefined;
  try {
    // Following a redirect would send the API key to another server, or turn a creation into a GET.
    response = await send(url, { ...request, ...UNCACHED, signal, redirect: 'manual' });
    const text = await readText(response);
    return text === undefined ? tooLong(response) : read(response, text, { expects, capture });
  } catch (cause) {
    return response && isOfEncoding(cause, response.headers) ? notRead(response) : { kind: 'none', cause };
  }
}

/** Returns the decoded body, or undefined when it exceeds MAX_RESPONSE_BYTES; the rest is then not read. */
async function readText({ body }: Response): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let [text, length] = ['', 0];
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function tooLong({ status, headers }: Response): Attempt {
  return { kind: 'none', cause: new Error(`the answer ${status} is longer than 4 MiB`), status, headers };
}

function notRead({ status, headers }: Response): Attempt {
  return { kind: 'none', cause: new UnreadEncoding(headers), status, headers };
}

/** Accepts a response only in the service's own form: proxies and gateways also respond, even with JSON. */
function read(
  response: Response,
  text: string,
  { expects, capture }: Pick<ApiRequest, 'expects' | 'capture'>,
): Attempt {
  const { status, headers } = response;
  const [mediaType = ''] = (headers.get('content-type') ?? '').split(';');
  const body = parsed(text);
  switch (mediaType.trim().toLowerCase()) {
    case 'application/json': {
      const isAsked = expects === 'leads' ? Array.isArray(body?.leads) : isLead(body?.lead) && isOf(capture, body.lead);
      if (status < 300 && isAsked) return { kind: 'answer', body, headers };
      break;
    }
    case 'application/problem+json':
      if (status >= 400 && body && PROBLEM_CODES.includes(body.code as string)) {
        return { kind: 'problem', problem: problemIn(body, status), headers };
      }
  }
  // fetch passes on a body that it cannot decode.
  if (headers.has('content-encoding') && body === null && mediaType.includes('json')) return notRead(response);
  return { kind: 'none', cause: new Error(`the answer ${status} is not from the service`), status, headers };
}

/** Checks the id only: it proves that the lead exists, and newer services may change other fields. */
function isLead(value: unknown): value is Readonly<Record<string, unknown>> {
  return value instanceof Object && 'id' in value && typeof value.id === 'string' && UUID.test(value.id);
}

/** Returns the problem in its documented form. Only `code` is certain to be in the body; other fields get defaults. */
function problemIn(body: Readonly<Record<string, unknown>>, status: number): ProblemDetails {
  const text = (name: string, otherwise: string): string => {
    const value = body[name];
    return typeof value === 'string' ? value : otherwise;
  };
  const { code, detail, fields } = body;
  return {
    type: text('type', 'about:blank'),
    title: text('title', 'without a title'),
    status,
    code: code as ProblemDetails['code'],
    ...(typeof detail === 'string' && { detail }),
    ...(areFields(fields) && { fields }),
    requestId: text('requestId', ''),
  };
}

function areFields(value: unknown): value is Record<string, string[]> {
  const isText = (item: unknown) => typeof item === 'string';
  return (
    value instanceof Object &&
    !Array.isArray(value) &&
    Object.values(value).every((messages) => Array.isArray(messages) && messages.every(isText))
  );
}

/** Parses JSON; null when the text is not JSON. */
function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether this attempt alone may have written the lead without reporting it. */
export function leavesOutcomeOpen(attempt: Attempt): boolean {
  if (attempt.kind === 'answer') return false;
  if (attempt.kind === 'none') return !isNotSent(attempt.cause);
  const { status, code } = attempt.problem;
  return status >= FAILING_FROM_STATUS && !CODES_WRITING_NOTHING.includes(code);
}

/**
 * Whether a refusal also settles earlier attempts: the service has looked up the idempotency key, or the data would have
 * been refused before as well. Other refusals (a key revoked in the meantime, a quota, a request that was spoiled on the
 * way) say nothing about them.
 */
export function settlesOutcome(attempt: Attempt): boolean {
  if (attempt.kind !== 'problem') return false;
  const { code, fields = {} } = attempt.problem;
  return SETTLING_CODES.includes(code) || (SETTLING_CODES_WITH_FIELDS.includes(code) && areOfData(Object.keys(fields)));
}

/** Whether a refusal names faulty fields, all of them in the lead's data. */
export const areOfData = (fields: readonly string[]): boolean =>
  fields.length > 0 && !fields.some((field) => FIELDS_NOT_OF_DATA.includes(field));

/** Whether the same request may succeed later. Every request is safe to repeat: a creation has its idempotency key. */
export function isWorthRepeating(attempt: Attempt): boolean {
  const status = attempt.kind === 'problem' ? attempt.problem.status : attempt.kind === 'none' ? attempt.status : 200;
  // A proxy may temporarily respond with 200 in place of the service.
  return status === undefined || status < 300 || TEMPORARY_STATUSES.includes(status) || status >= FAILING_FROM_STATUS;
}

/** Returns the `Retry-After` of a response; seconds. */
export function parseRetryAfter({ headers }: { readonly headers?: Headers }): number | undefined {
  const value = headers?.get('retry-after') ?? '';
  return /^\d+$/.test(value) ? Number(value) : undefined;
}
