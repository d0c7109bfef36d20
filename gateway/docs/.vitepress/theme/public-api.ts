import { withBase } from 'vitepress';

/** An answer to a page's request. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON of the response; undefined if it has none. */
  readonly body: unknown;
  /** The quota after the request, if it was counted. */
  readonly quota: Quota | undefined;
}

/** A window of the quota: `left` of `limit` requests. */
export interface Quota {
  readonly left: number;
  readonly limit: number;
  /** When the window ends; milliseconds since 1970. */
  readonly endsAt: number;
}

/** Why a request got no lead, for a person. */
export interface Fault {
  readonly text: string;
  /** The address of a page that says what to do. */
  readonly page: string | undefined;
  /** When the same request may succeed; undefined if a person must act. */
  readonly retrySeconds: number | undefined;
}

/** Returns the path of the leads. The same host serves this page, so requests need no CORS. */
export const leadsPath = (): string => new URL(withBase('/../v1/integrations/leads'), location.href).pathname;

/**
 * Sends a request to the public API.
 *
 * @param path appended to the path of the leads
 * @throws TypeError when there is no answer
 */
export async function ask(path: string, apiKey: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { ...init.headers, authorization: `Bearer ${apiKey}` };
  const response = await fetch(leadsPath() + path, { ...init, headers, cache: 'no-store' });
  const body = await response.json().catch(() => undefined);
  return { status: response.status, headers: response.headers, body, quota: readQuota(response.headers) };
}

function readQuota(headers: Headers): Quota | undefined {
  const [, left, seconds] = /r=(\d+);t=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? [];
  const [, limit] = /q=(\d+)/.exec(headers.get('ratelimit-policy') ?? '') ?? [];
  return left && limit && seconds ? { left: +left, limit: +limit, endsAt: Date.now() + +seconds * 1000 } : undefined;
}

/** How long a page waits when an unavailable service names no time; seconds. */
const RETRY_SECONDS = 5;

/** Returns what to show instead of leads, for an answer or for none. */
export function toFault(answer?: Answer): Fault {
  if (!answer) {
    return { text: 'The service does not answer.', page: undefined, retrySeconds: RETRY_SECONDS };
  }
  const { title, detail, type } = (answer.body ?? {}) as Readonly<Record<string, string | undefined>>;
  const wait = Number(answer.headers.get('retry-after')) || RETRY_SECONDS;
  return {
    text: [title ?? `The response has the status ${answer.status}.`, detail, HINTS[answer.status]]
      .filter(Boolean)
      .join(' '),
    page: type,
    retrySeconds: answer.status === 429 || answer.status >= 500 ? wait : undefined,
  };
}

/** Additional advice for this page, by status. */
const HINTS: Readonly<Record<number, string>> = {
  401: 'Paste the whole key, or another one.',
  403: 'This page needs a key with the scope leads.read.',
};
