import { randomUUID } from 'node:crypto';
import type { Lead, LeadCapture, LeadList, LeadResponse } from './contract.ts';
import { type Answer, send } from './send.ts';

/** What a client is made of. */
export interface LeadIntakeClientOptions {
  /** Where the API is, without `/v1`: `https://api.example.com`. */
  readonly baseUrl: string;
  /** The secret of an API key, `lik_…`. Keep it on the server. */
  readonly apiKey: string;
  /** When to give up on a request, over all of its attempts; milliseconds. Unless told, 60,000. */
  readonly deadlineMs?: number;
  /** When to give up on one attempt; milliseconds. Unless told, 10,000. */
  readonly attemptTimeoutMs?: number;
  /** What sends requests, in place of Node's own. */
  readonly fetch?: typeof fetch;
}

/** What one request is to have otherwise. */
export interface RequestOptions {
  /** Aborted when the caller gives up. */
  readonly signal?: AbortSignal;
  /** In place of the client's. */
  readonly deadlineMs?: number;
}

/** What one creation is to have otherwise. */
export interface CreationOptions extends RequestOptions {
  /**
   * A UUID that stands for this lead, the same whenever its creation is repeated: kept with the data, it survives a crash
   * of the caller. Unless given, the client makes one for this call and its retries.
   */
  readonly idempotencyKey?: string;
}

/** Which page of the list. */
export interface ListOptions extends RequestOptions {
  /** Leads per page, 1 to 100; unless told, 25. */
  readonly limit?: number;
  /** The `nextCursor` of the page before; unless given, the first page. */
  readonly cursor?: string;
}

/** A lead that there is now, because of this creation or of an earlier one with the same key. */
export interface CreatedLead {
  /** As it was created. */
  readonly lead: Lead;
  /** Whether an earlier attempt had created it. */
  readonly replayed: boolean;
  readonly idempotencyKey: string;
}

/**
 * The API with one key. What comes of a request is told by a LeadIntakeError; a TypeError, of an id that cannot stand in a
 * header, comes before anything is sent.
 */
export interface LeadIntakeClient {
  /** Creates a lead, and makes sure of it: a creation whose outcome is unknown is repeated with the same key. */
  createLead(capture: LeadCapture, options?: CreationOptions): Promise<CreatedLead>;
  /** Reads a lead as it stands. */
  getLead(id: string, options?: RequestOptions): Promise<Lead>;
  /** Reads one page of the list, newest first. */
  listLeads(options?: ListOptions): Promise<LeadList>;
  /** All leads, newest first; pages are asked for as they are needed, each with a deadline of its own. */
  allLeads(options?: ListOptions): AsyncGenerator<Lead, void, undefined>;
}

/**
 * Makes a client. It keeps nothing open, and can be used for any number of requests at once.
 *
 * @throws TypeError when the address or the key cannot be one
 */
export function createLeadIntakeClient({
  baseUrl,
  apiKey,
  deadlineMs = 60_000,
  attemptTimeoutMs = 10_000,
  fetch = globalThis.fetch,
}: LeadIntakeClientOptions): LeadIntakeClient {
  const leadsUrl = new URL(`${baseUrl.replace(/\/+$/, '')}/v1/integrations/leads`).href;
  const authorization = new Headers({ authorization: `Bearer ${apiKey}` });
  const sending = { fetch, attemptTimeoutMs, deadlineMs };

  const read = (
    asksFor: 'lead' | 'leads',
    path: string,
    { signal, deadlineMs = sending.deadlineMs }: RequestOptions,
  ): Promise<Answer> =>
    send({ method: 'GET', url: leadsUrl + path, headers: authorization, asksFor }, undefined, {
      ...sending,
      deadlineMs,
      signal,
    });

  async function listLeads({ limit, cursor, ...options }: ListOptions = {}): Promise<LeadList> {
    const query = new URLSearchParams({ ...(limit !== undefined && { limit: `${limit}` }), ...(cursor && { cursor }) });
    return (await read('leads', `?${query}`, options)).body as LeadList;
  }

  return {
    async createLead(capture, { idempotencyKey = randomUUID(), signal, deadlineMs = sending.deadlineMs } = {}) {
      const headers = new Headers(authorization);
      headers.set('content-type', 'application/json');
      headers.set('idempotency-key', idempotencyKey);
      const body = JSON.stringify(capture);
      const request = { method: 'POST', url: leadsUrl, headers, body, asksFor: 'lead' } as const;
      const answer = await send(request, idempotencyKey, { ...sending, deadlineMs, signal });
      return {
        lead: (answer.body as LeadResponse).lead,
        replayed: answer.headers.has('idempotent-replayed'),
        idempotencyKey,
      };
    },

    async getLead(id, options = {}) {
      return ((await read('lead', `/${encodeURIComponent(id)}`, options)).body as LeadResponse).lead;
    },

    listLeads,

    async *allLeads(options = {}) {
      let cursor = options.cursor;
      do {
        const page = await listLeads({ ...options, ...(cursor && { cursor }) });
        yield* page.leads;
        cursor = page.nextCursor ?? undefined;
      } while (cursor);
    },
  };
}
