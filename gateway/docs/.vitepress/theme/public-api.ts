import { withBase } from 'vitepress';

/** An answer to a request of a page. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON of the response; undefined if it has none. */
  readonly body: unknown;
  /** The quota after the request, if it counted. */
  readonly quota: Quota | undefined;
}

/** A window of the quota: `left` of `limit` requests, for `seconds` more. */
export interface Quota {
  readonly left: number;
  readonly limit: number;
  readonly seconds: number;
}

/** The reason, for a person, why a request got no lead. */
export interface Fault {
  readonly text: string;
  /** The address of a page that says what to do. */
  readonly page: string | undefined;
  /** When the same request may succeed; undefined if it needs a person. */
  readonly retrySeconds: number | undefined;
}

/** The path of the leads. A page is served by the host that serves them, so it needs no permission of another one. */
export const leadsPath = (): string => new URL(withBase('/../v1/integrations/leads'), location.href).pathname;

/**
 * Sends a request to the public API.
 *
 * @param path what follows the path of the leads
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
  return left && limit && seconds ? { left: +left, limit: +limit, seconds: +seconds } : undefined;
}

/** How long a page waits when a service that cannot be reached names no time; seconds. */
const RETRY_SECONDS = 5;

/** Returns what to tell of an answer, or of none, in place of leads. */
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

/** Sentences that say what to do on this page, because a problem does not know it. */
const HINTS: Readonly<Record<number, string>> = {
  401: 'Paste the whole key, or another one.',
  403: 'This page needs a key with the scope leads.read.',
};
