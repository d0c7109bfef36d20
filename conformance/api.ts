import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

const LEADS = '/v1/integrations/leads';

/** How long an answer may take before it counts as none; milliseconds. */
const TIMEOUT_MS = 30_000;

/** The longest time to wait for the quota that is worth waiting; seconds. */
const MAX_WAIT_SECONDS = 600;

/** The largest page of the contract. */
const MAX_PAGE = 100;

/** An answer, whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A body to create a lead. */
export interface Capture {
  readonly displayName: string;
  readonly contact: { readonly type: string; readonly value: string };
  readonly sourceId?: string | null;
  readonly note?: string | null;
}

/** A lead, as the contract has it. */
export interface Lead {
  readonly id: string;
  readonly displayName: string;
  readonly stage: string;
  readonly sourceId: string | null;
  readonly note: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** A page of a list. */
export interface Page {
  readonly leads: readonly Lead[];
  readonly nextCursor: string | null;
}

/** Part of a request; a header that is null is left out. */
export interface Request {
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string;
  /** Whether a 429 is the answer that is wanted; otherwise it is waited for the quota, and asked again. */
  readonly takes429?: boolean;
}

/** A deployment of the contract, as a website's server sees it. */
export class Api {
  /** What the deployment was given to make leads with: a source of the studio that is enabled. */
  readonly sourceId: string | undefined;
  readonly #baseUrl: string;
  readonly #secret: string;
  readonly #onWait: (seconds: number) => void;

  /**
   * @param baseUrl address without the version
   * @param secret of a key with both scopes
   * @param onWait is told when the quota is used up, and for how long
   */
  constructor(baseUrl: string, secret: string, sourceId?: string, onWait: (seconds: number) => void = () => {}) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#secret = secret;
    this.sourceId = sourceId;
    this.#onWait = onWait;
  }

  /** Asks for any path. @throws Error when there is no answer */
  async ask(method: string, path: string, { headers = {}, body, takes429 = false }: Request = {}): Promise<Answer> {
    const all = { authorization: `Bearer ${this.#secret}`, ...headers };
    const sent = Object.entries(all).filter((header): header is [string, string] => header[1] !== null);
    const init = { method, headers: sent, ...(body !== undefined && { body }), redirect: 'manual' as const };
    for (;;) {
      const response = await fetch(this.#baseUrl + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      const seconds = Number(answer.headers.get('retry-after'));
      const isToWait = answer.status === 429 && !takes429 && seconds >= 1 && seconds <= MAX_WAIT_SECONDS;
      if (!isToWait) return answer;
      this.#onWait(seconds);
      await wait(seconds * 1000);
    }
  }

  /** Creates a lead; the body may be anything, also what is no capture. */
  create(body: unknown, idempotencyKey: string | null = randomUUID(), request: Request = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': idempotencyKey, ...request.headers };
    return this.ask('POST', LEADS, {
      ...request,
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  read(id: string, request?: Request): Promise<Answer> {
    return this.ask('GET', `${LEADS}/${id}`, request);
  }

  /** @param query as it stands in the address, without the question mark */
  list(query = '', request?: Request): Promise<Answer> {
    return this.ask('GET', query === '' ? LEADS : `${LEADS}?${query}`, request);
  }

  /** All leads of the studio, page by page. @throws Error when a page is none, or the list has no end */
  async allLeads(): Promise<Lead[]> {
    const leads: Lead[] = [];
    const cursors = new Set<string>();
    let cursor: string | null = null;
    do {
      const { status, text } = await this.list(`limit=${MAX_PAGE}${cursor === null ? '' : `&cursor=${cursor}`}`);
      if (status !== 200) throw new Error(`a page of the list was answered with ${status}: ${text}`);
      const page: Page = JSON.parse(text);
      leads.push(...page.leads);
      cursor = page.nextCursor;
      if (cursor !== null && cursors.has(cursor)) throw new Error('the list leads back to a page that it had before');
      if (cursor !== null) cursors.add(cursor);
    } while (cursor !== null);
    return leads;
  }
}

/** A valid body to create a lead, whose contact is nobody else's. */
export function aCapture(overrides: Partial<Capture> = {}): Capture {
  return { displayName: 'Conformance check', contact: anEmail(), ...overrides };
}

/** A contact that nobody else has. */
export function anEmail(): Capture['contact'] {
  return { type: 'email', value: `${randomUUID()}@example.com` };
}
