import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

const LEADS = '/v1/integrations/leads';

/** The timeout of a request; milliseconds. */
const TIMEOUT_MS = 30_000;

/** The longest Retry-After that the client waits for; seconds. */
const MAX_RETRY_AFTER_SECONDS = 600;

/** The largest page size of the contract. */
const MAX_PAGE_SIZE = 100;

/** A complete response. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A body that creates a lead. */
export interface Capture {
  readonly displayName: string;
  readonly contact: { readonly type: string; readonly value: string };
  readonly sourceId?: string | null;
  readonly note?: string | null;
}

export interface Lead {
  readonly id: string;
  readonly displayName: string;
  readonly stage: string;
  readonly sourceId: string | null;
  readonly note: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface Page {
  readonly leads: readonly Lead[];
  readonly nextCursor: string | null;
}

/** Additions to a request. A header with the value null is not sent. */
export interface Extras {
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string;
  /** Whether to return a 429. Otherwise the client waits for the quota and retries. */
  readonly returns429?: boolean;
}

/** A client of a deployment, in the role of a website's server. */
export class Api {
  /** An enabled source of the studio, if one was given. */
  readonly sourceId: string | undefined;
  readonly #baseUrl: string;
  readonly #secret: string;
  readonly #onWait: (seconds: number) => void;

  /**
   * @param baseUrl the address without the version
   * @param secret the secret of a key with both scopes
   * @param onWait called when the quota is exhausted, with the time until the retry
   */
  constructor(baseUrl: string, secret: string, sourceId?: string, onWait: (seconds: number) => void = () => {}) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#secret = secret;
    this.sourceId = sourceId;
    this.#onWait = onWait;
  }

  /** Sends a request to any path. @throws Error when there is no response */
  async send(method: string, path: string, { headers = {}, body, returns429 = false }: Extras = {}): Promise<Answer> {
    const all = { authorization: `Bearer ${this.#secret}`, ...headers };
    const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== null);
    const init = { method, headers: sent, ...(body !== undefined && { body }), redirect: 'manual' as const };
    for (;;) {
      const response = await fetch(this.#baseUrl + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      const seconds = Number(answer.headers.get('retry-after'));
      const mustWait = answer.status === 429 && !returns429 && seconds >= 1 && seconds <= MAX_RETRY_AFTER_SECONDS;
      if (!mustWait) return answer;
      this.#onWait(seconds);
      await wait(seconds * 1000);
    }
  }

  /** Requests the creation of a lead. The body may be invalid. */
  create(body: unknown, idempotencyKey: string | null = randomUUID(), request: Extras = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': idempotencyKey, ...request.headers };
    return this.send('POST', LEADS, {
      ...request,
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  read(id: string, request?: Extras): Promise<Answer> {
    return this.send('GET', `${LEADS}/${id}`, request);
  }

  /** @param query the query string, without the question mark */
  list(query = '', request?: Extras): Promise<Answer> {
    return this.send('GET', query === '' ? LEADS : `${LEADS}?${query}`, request);
  }

  /** Counts the leads of the studio, page by page. @throws Error when a page is refused or repeated */
  async countLeads(): Promise<number> {
    const cursors = new Set<string>();
    let count = 0;
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, text } = await this.list(`limit=${MAX_PAGE_SIZE}${cursor && `&cursor=${cursor}`}`);
      if (status !== 200) throw new Error(`listing leads failed with status ${status}: ${text}`);
      const { leads, nextCursor }: Page = JSON.parse(text);
      count += leads.length;
      cursor = nextCursor;
      if (cursor !== null && cursors.has(cursor))
        throw new Error('listing leads does not end: a cursor was returned twice');
      if (cursor !== null) cursors.add(cursor);
    }
    return count;
  }
}

/** Returns a valid body with a unique contact. */
export function aCapture(overrides: Partial<Capture> = {}): Capture {
  return { displayName: 'Conformance check', contact: anEmail(), ...overrides };
}

/** Returns a unique contact. */
export function anEmail(): Capture['contact'] {
  return { type: 'email', value: `${randomUUID()}@example.com` };
}
