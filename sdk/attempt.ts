import type { ProblemDetails } from './contract.ts';

/** More than the longest answer of the service by far; bytes, when nothing is compressed any more. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** A request of the API. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  /** Address in full. */
  readonly url: string;
  readonly headers: Headers;
  readonly body?: string;
  /** What the body of a success has: one lead, or a list of them. */
  readonly asksFor: 'lead' | 'leads';
}

/** What came of sending a request once. */
export type Attempt =
  | { readonly kind: 'answer'; readonly body: unknown; readonly headers: Headers }
  | { readonly kind: 'problem'; readonly problem: ProblemDetails; readonly headers: Headers }
  /** `status` and `headers`: of an answer that is not the service's, but of something on the way. */
  | { readonly kind: 'none'; readonly cause: unknown; readonly status?: number; readonly headers?: Headers };

/** Sends a request once. Never throws: what went wrong is the cause of an attempt without an answer. */
export async function attempt(
  { url, asksFor, ...request }: ApiRequest,
  send: typeof fetch,
  signal: AbortSignal,
): Promise<Attempt> {
  try {
    // A redirect would send a creation elsewhere, as a GET or with the secret.
    const response = await send(url, { ...request, signal, redirect: 'manual' });
    const text = await textOf(response);
    return text === undefined ? tooLong(response) : read(response, text, asksFor);
  } catch (cause) {
    return { kind: 'none', cause };
  }
}

/** What came, decoded; undefined when it is longer than an answer of the service may be: the rest is not read. */
async function textOf({ body }: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_RESPONSE_BYTES) return undefined;
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

function tooLong({ status, headers }: Response): Attempt {
  return { kind: 'none', cause: new Error(`the answer ${status} is longer than 4 MiB`), status, headers };
}

/** What lies on the way answers in the service's place, in JSON as well: only what has the service's form is from it. */
function read({ status, headers }: Response, text: string, asksFor: ApiRequest['asksFor']): Attempt {
  const [mediaType = ''] = (headers.get('content-type') ?? '').split(';');
  const body = parsed(text);
  switch (mediaType.trim().toLowerCase()) {
    case 'application/json': {
      const isAsked = asksFor === 'leads' ? Array.isArray(body?.leads) : isLead(body?.lead);
      if (status < 300 && isAsked) return { kind: 'answer', body, headers };
      break;
    }
    case 'application/problem+json':
      if (status >= 400 && typeof body?.code === 'string') {
        return { kind: 'problem', problem: problemIn(body, status), headers };
      }
  }
  return { kind: 'none', cause: new Error(`the answer ${status} is not one of the service`), status, headers };
}

/** Whatever else it has, or has not: by its id there is a lead. */
function isLead(value: unknown): boolean {
  return value instanceof Object && 'id' in value && typeof value.id === 'string' && UUID.test(value.id);
}

/** A problem as it is documented, of one that need not be so in anything but its code. */
function problemIn(body: Readonly<Record<string, unknown>>, status: number): ProblemDetails {
  const text = (name: string, otherwise: string): string => {
    const value = body[name];
    return typeof value === 'string' ? value : otherwise;
  };
  const { code, detail, fields } = body;
  return {
    type: text('type', 'about:blank'),
    title: text('title', `The service has answered ${status} ${code}.`),
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

/** What is no JSON has nothing. */
function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Failures to connect, by the codes of Node: the request never left. */
const NOT_CONNECTED = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** Whether the attempt, taken alone, may have written something without saying so. */
export function leavesOutcomeOpen(attempt: Attempt): boolean {
  if (attempt.kind === 'answer') return false;
  if (attempt.kind === 'problem') {
    const { status, code } = attempt.problem;
    return status >= 500 && code !== 'integration_rate_unavailable';
  }
  const reason = (attempt.cause as { cause?: { code?: string } } | null | undefined)?.cause?.code;
  return reason === undefined || !NOT_CONNECTED.includes(reason);
}

/**
 * Whether a refusal also settles what earlier attempts have left open: the service has looked at the idempotency key, or
 * at data that would have been refused before, too. Others (a key that is revoked meanwhile, a quota) say nothing of it.
 */
export function settlesOutcome(attempt: Attempt): boolean {
  return attempt.kind === 'problem' && [400, 409].includes(attempt.problem.status);
}

/** Whether the same request may succeed later. Every request of the API can be repeated: a creation has its key. */
export function isWorthRepeating(attempt: Attempt): boolean {
  const status = attempt.kind === 'problem' ? attempt.problem.status : attempt.kind === 'none' ? attempt.status : 200;
  // Something on the way may answer 200 in the service's place for a while.
  return status === undefined || status < 300 || status === 408 || status === 429 || status >= 500;
}

/** How long the answer asks to wait; seconds. */
export function retryAfterOf({ headers }: { readonly headers?: Headers }): number | undefined {
  const value = headers?.get('retry-after') ?? '';
  return /^\d+$/.test(value) ? Number(value) : undefined;
}
