import type { ProblemDetails } from './contract.ts';

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
    return read(response, await response.text(), asksFor);
  } catch (cause) {
    return { kind: 'none', cause };
  }
}

/** What lies on the way answers in the service's place, in JSON as well: only what has the service's form is from it. */
function read({ status, headers }: Response, text: string, asksFor: ApiRequest['asksFor']): Attempt {
  const [mediaType = ''] = (headers.get('content-type') ?? '').split(';');
  const body = parsed(text);
  switch (mediaType.trim().toLowerCase()) {
    case 'application/json': {
      const asked = body?.[asksFor];
      const isAsked = asked instanceof Object && Array.isArray(asked) === (asksFor === 'leads');
      if (status < 300 && isAsked) return { kind: 'answer', body, headers };
      break;
    }
    case 'application/problem+json':
      if (status >= 400 && typeof body?.code === 'string') {
        return { kind: 'problem', problem: { ...(body as unknown as ProblemDetails), status }, headers };
      }
  }
  return { kind: 'none', cause: new Error(`the answer ${status} is not one of the service`), status, headers };
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
  const reason = (attempt.cause as { cause?: { code?: string } }).cause?.code;
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
