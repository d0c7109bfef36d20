import type { LeadIntakeClient } from '../client.ts';
import { LONE_SURROGATE } from './capture-text.ts';
import type { Connection } from './connection.ts';
import type { Outbox } from './outbox.ts';
import { OutboxError } from './outbox-error.ts';
import { HEADERS, PAGE } from './page-html.ts';

/** Options of {@link createOutboxPage}. */
export interface OutboxPageOptions {
  readonly outbox: Outbox;
  /** A connection without an open transaction; of PostgreSQL a `Pool`. */
  readonly connection: Connection;
  /**
   * A client whose key has the scope `leads.read`, or a function that creates one for each comparison, so that wrong settings
   * break nothing else. Without a client, the page cannot compare.
   */
  readonly client?: LeadIntakeClient | (() => LeadIntakeClient) | undefined;
  /** Gets the errors that the page answers with 500, such as those of the database. Default: prints their messages to stderr. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A request, as frameworks have it. */
export interface PageRequest {
  readonly method?: string | undefined;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The text or its bytes, or the object that the framework has parsed from it. */
  readonly body?: unknown;
}

/** A response, to be sent as it is. */
export interface PageResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A request of Node's own server, Express or Fastify (`request.raw`). */
export interface NodeRequest extends PageRequest {
  /** Whether something has already read the body, such as `express.json()`, which then puts it into `body`. */
  readonly readableEnded: boolean;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** Its response. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

/** A page of an outbox. It shows personal data and has no login: mount it behind the website's. */
export interface OutboxPage {
  /** Returns the page, its JSON, or a refusal. Never rejects. */
  respond(request: PageRequest): Promise<PageResponse>;
  /** Reads a request of Node, at most 64 KiB, and responds to it. Never rejects. */
  handle(request: NodeRequest, response: NodeResponse): Promise<void>;
}

/** The maximum duration of a comparison in one request; milliseconds. The next request continues it. */
const COMPARING_MS = 20_000;

/** The maximum size of a request's body; bytes. The page's own are far below 1 KiB. */
const MAX_BODY_BYTES = 64 * 1024;

/** Captures that are nested more deeply are shown as unreadable, because the parsers of the languages differ. */
const MAX_DEPTH = 100;

const FAILED =
  'The website has failed, perhaps because its database does not answer. Refresh in a minute; if it fails again, ask whoever runs the website.';

/** A refused request, with the status of its response. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Creates the page of an outbox, for the people who look after its leads. */
export function createOutboxPage(options: OutboxPageOptions): OutboxPage {
  const onError = options.onError ?? ((error) => console.error('The page of the outbox has failed:', String(error)));

  async function respond(request: PageRequest): Promise<PageResponse> {
    try {
      const method = request.method ?? 'GET';
      if (method === 'POST') await act(options, onError, parseBody(request));
      else if (method !== 'GET' && method !== 'HEAD') throw new Refusal(405, 'The page accepts only GET and POST.');
      else if (!String(request.headers.accept).includes('application/json'))
        return { status: 200, headers: { ...HEADERS, 'Content-Type': 'text/html; charset=utf-8' }, body: PAGE };
      return json(200, await makeReport(options));
    } catch (error) {
      if (error instanceof Refusal) return json(error.status, { error: error.message });
      if (error instanceof OutboxError) return json(409, { error: error.message });
      onError(error);
      return json(500, { error: FAILED });
    }
  }

  return {
    respond,
    async handle(request, response) {
      const { method, headers, readableEnded } = request;
      const body = method !== 'POST' || readableEnded ? request.body : await bytesIn(request);
      if (body === null) return;
      const answer = await respond({ method, headers, body });
      // Node's server then reads no more of a body that is too large.
      const closing = answer.status === 413 && { Connection: 'close' };
      response.writeHead(answer.status, { ...answer.headers, ...closing }).end(answer.body);
    },
  };
}

const json = (status: number, body: object): PageResponse => ({
  status,
  headers: { ...HEADERS, 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

/** Returns the body, or its beginning if it exceeds the limit; null: the client went away. */
function bytesIn(request: NodeRequest): Promise<Uint8Array | null> {
  const bytes = new Uint8Array(MAX_BODY_BYTES + 1);
  let length = 0;
  return new Promise((resolve) => {
    request.on('data', (chunk) => {
      const part = chunk.subarray(0, bytes.length - length);
      bytes.set(part, length);
      length += part.length;
      if (length === bytes.length) resolve(bytes);
    });
    request.on('end', () => resolve(bytes.subarray(0, length)));
    request.on('error', () => resolve(null));
    request.on('close', () => resolve(null));
  });
}

function parseBody({ headers, body }: PageRequest): { action?: unknown; idempotencyKey?: unknown } {
  // Before a browser lets another website's page send either, it asks for permission (CORS), which nothing here gives.
  if (!/^application\/json\b/i.test(String(headers['content-type'])))
    throw new Refusal(415, 'The request must have the type application/json.');
  if (String(headers['x-outbox-page']).trim() !== '1')
    throw new Refusal(403, 'The request is not from the page: it must have the header X-Outbox-Page: 1.');
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  if (!(bytes instanceof Uint8Array)) return Object(body);
  if (bytes.length > MAX_BODY_BYTES) throw new Refusal(413, 'The request is longer than 64 KiB.');
  try {
    return Object(JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)));
  } catch {
    throw new Refusal(400, 'The request is not JSON.');
  }
}

/** Whether any database can look for the key. */
const isKey = (key: unknown): key is string => typeof key === 'string' && !/[\p{Control}\p{Surrogate}]/u.test(key);

async function act(
  { outbox, connection, client }: OutboxPageOptions,
  onError: (error: unknown) => void,
  { action, idempotencyKey: key }: { action?: unknown; idempotencyKey?: unknown },
): Promise<void> {
  if (action === 'compare') {
    if (client === undefined) throw new Refusal(409, 'The page has no API key with the scope leads.read.');
    await outbox.reconcile(connection, madeBy(client, onError), { maxMs: COMPARING_MS });
  } else if ((action === 'retry' || action === 'discard') && isKey(key)) {
    await outbox[action](connection, key);
  } else throw new Refusal(400, 'The action must be compare, or retry or discard with an idempotencyKey.');
}

function madeBy(
  client: LeadIntakeClient | (() => LeadIntakeClient),
  onError: (error: unknown) => void,
): LeadIntakeClient {
  if (typeof client !== 'function') return client;
  try {
    return client();
  } catch (error) {
    onError(error);
    throw new Refusal(
      409,
      'The API key or the address of the service is not set up correctly: tell whoever runs the website.',
    );
  }
}

async function makeReport({ outbox, connection, client }: OutboxPageOptions): Promise<object> {
  const waiting = await outbox.waiting(connection);
  const { count, entries } = await outbox.needsAttention(connection);
  return {
    needsAttention: {
      count,
      entries: entries.map((entry) => ({ ...entry, capture: isPortable(entry.capture) ? entry.capture : null })),
    },
    waiting: {
      count: waiting?.count ?? 0,
      since: waiting?.oldest ?? null,
      reasons: Object.fromEntries(waiting?.reasons.map(({ reason, count }) => [reason, count]) ?? []),
    },
    comparison: await outbox.lastReconciliation(connection),
    mayCompare: client !== undefined,
  };
}

/** Whether all languages render the value as the same JSON. */
function isPortable(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return !LONE_SURROGATE.test(value);
  if (typeof value === 'number') return Number.isFinite(value);
  if (!(value instanceof Object)) return true;
  return (
    depth < MAX_DEPTH &&
    Object.entries(value)
      .flat()
      .every((part) => isPortable(part, depth + 1))
  );
}
