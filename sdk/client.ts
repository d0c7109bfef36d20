import type { Lead, LeadCapture, LeadList, LeadResponse } from './api-types.ts';
import { CAPTURE_RULES } from './capture-rules.ts';
import { requireLimits, requireServer, toAuthorization, toLeadsUrl } from './configuration.ts';
import { type Quota, quotaIn } from './quota.ts';
import { type Answer, type AttemptReport, send } from './send.ts';

/** Options of {@link createLeadIntakeClient}. */
export interface LeadIntakeClientOptions {
  /** The base URL of the API, without `/v1`: `https://api.example.com`. */
  readonly baseUrl: string;
  /** The secret of an API key, `lik_…`. Keep it on the server. */
  readonly apiKey: string;
  /** The time limit of a request over all of its attempts; milliseconds. Default: 60,000. */
  readonly deadlineMs?: number;
  /** The time limit of one attempt; milliseconds. Default: 10,000. */
  readonly attemptTimeoutMs?: number;
  /** A replacement for the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Called after each attempt of each request, for logs and metrics. Its errors are logged with `console.error`. */
  readonly onAttempt?: (report: AttemptReport) => void;
  /** Permits an http address outside this machine and its network, where others can read the key and the leads. Default: false. */
  readonly allowHttp?: boolean;
}

/** Options of one request. */
export interface RequestOptions {
  /** Cancels the request, including its retries. */
  readonly signal?: AbortSignal;
  /** Overrides the client's deadline; milliseconds. */
  readonly deadlineMs?: number;
}

/** Options of one creation. */
export interface CreationOptions extends RequestOptions {
  /**
   * A UUID that identifies this creation. Store it with the data and reuse it to repeat the creation after a crash. By
   * default the client generates one for this call and its retries.
   */
  readonly idempotencyKey?: string;
}

/** Options of a list request: which page to return. */
export interface ListOptions extends RequestOptions {
  /** Leads per page, 1 to 100. Default: 25. */
  readonly limit?: number;
  /** The `nextCursor` of the previous page. Default: the first page. */
  readonly cursor?: string;
}

/** The lead created by this request, or by an earlier one with the same idempotency key. */
export interface CreatedLead {
  /** The lead as it was when created. */
  readonly lead: Lead;
  /** Whether an earlier request had created the lead. */
  readonly replayed: boolean;
  readonly idempotencyKey: string;
  /** The number of times the request was sent. If 1, and `replayed` is true, another call had created the lead. */
  readonly attempts: number;
}

/**
 * A client of the API with one key. A request that fails rejects with a LeadIntakeError. A faulty call rejects with a TypeError
 * before anything is sent: an idempotency key that is not a UUID, an empty id, a deadline of 0, a number that JSON cannot represent.
 */
export interface LeadIntakeClient {
  /** Creates a lead. Repeats a creation whose outcome is unknown with the same key. */
  createLead(capture: LeadCapture, options?: CreationOptions): Promise<CreatedLead>;
  /** Returns the current state of a lead. */
  getLead(id: string, options?: RequestOptions): Promise<Lead>;
  /** Returns one page of leads, newest first. */
  listLeads(options?: ListOptions): Promise<LeadList>;
  /** Iterates over all leads, newest first. Requests each page when it is needed, with a deadline per page. */
  allLeads(options?: ListOptions): AsyncGenerator<Lead, void, undefined>;
  /** Returns the quota from the latest response; undefined before the first one, and if it lacked the headers. */
  quota(): Quota | undefined;
}

/**
 * Creates a client. It holds no connection and can be used for any number of concurrent requests.
 *
 * @throws TypeError when the base URL, the key or a time limit is malformed, or in a browser; its message omits the key
 */
export function createLeadIntakeClient({
  baseUrl,
  apiKey,
  deadlineMs = 60_000,
  attemptTimeoutMs = 10_000,
  fetch: given = globalThis.fetch,
  onAttempt,
  allowHttp = false,
}: LeadIntakeClientOptions): LeadIntakeClient {
  requireServer();
  requireLimits({ deadlineMs, attemptTimeoutMs });
  let quota: Quota | undefined;
  const fetch: typeof given = async (...request) => {
    const response = await given(...request);
    quota = quotaIn(response.headers);
    return response;
  };
  const leadsUrl = toLeadsUrl(baseUrl, allowHttp);
  const authorization = toAuthorization(apiKey);
  const defaults = { fetch, attemptTimeoutMs, deadlineMs, onAttempt };

  const read = async (
    expects: 'lead' | 'leads',
    path: string,
    { signal, deadlineMs = defaults.deadlineMs }: RequestOptions,
  ): Promise<Answer> => {
    requireLimits({ deadlineMs });
    const request = { method: 'GET', url: leadsUrl + path, headers: authorization, expects } as const;
    return send(request, undefined, { ...defaults, deadlineMs, signal });
  };

  async function listLeads({ limit, cursor, ...options }: ListOptions = {}): Promise<LeadList> {
    const query = new URLSearchParams({ ...(limit !== undefined && { limit: `${limit}` }), ...(cursor && { cursor }) });
    return (await read('leads', `?${query}`, options)).body as LeadList;
  }

  return {
    async createLead(capture, options = {}) {
      // JavaScript would ignore a key in place of the options, so that each repetition would create another lead.
      if (typeof options !== 'object') throw new TypeError('createLead takes options: { idempotencyKey }');
      const { idempotencyKey = crypto.randomUUID(), signal, deadlineMs = defaults.deadlineMs } = options;
      requireLimits({ deadlineMs });
      requireUuid(idempotencyKey);
      const body = toText(capture);
      const headers = new Headers(authorization);
      headers.set('content-type', 'application/json');
      headers.set('idempotency-key', idempotencyKey);
      const sent = JSON.parse(body);
      const request = { method: 'POST', url: leadsUrl, headers, body, expects: 'lead', capture: sent } as const;
      const answer = await send(request, idempotencyKey, { ...defaults, deadlineMs, signal });
      return {
        lead: (answer.body as LeadResponse).lead,
        replayed: answer.headers.has('idempotent-replayed'),
        idempotencyKey,
        attempts: answer.attempts,
      };
    },

    async getLead(id, options = {}) {
      // A URL drops `.` and `..` from its path, and an empty id would address the list.
      if (typeof id !== 'string' || /^\.{0,2}$/.test(id)) throw new TypeError('getLead takes the id of a lead');
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

    quota: () => quota,
  };
}

/** @throws TypeError when the service does not accept such a key */
function requireUuid(idempotencyKey: string): void {
  if (typeof idempotencyKey !== 'string' || !CAPTURE_RULES.sourceId?.every(([uuid]) => uuid.test(idempotencyKey))) {
    throw new TypeError('idempotencyKey must be a UUID with hyphens');
  }
}

/** Serializes a lead. @throws TypeError when it is not a lead, or JSON would silently drop or change a part of it */
function toText(capture: LeadCapture): string {
  if (typeof capture !== 'object' || capture === null || Array.isArray(capture)) {
    throw new TypeError('createLead takes a lead: { displayName, contact }');
  }
  return JSON.stringify(capture, (name, value) => {
    if (
      typeof value === 'function' ||
      typeof value === 'symbol' ||
      (typeof value === 'number' && !Number.isFinite(value))
    ) {
      throw new TypeError(`the lead cannot be sent: ${name} is a ${typeof value} that JSON does not have`);
    }
    return value;
  });
}
