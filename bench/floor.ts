/**
 * The floor: the minimum that a lead intake does, hand-made in one process. Key, count, validation, one durable write, response; no rule
 * beyond its three indexes, no second process, no layers. The product's additional cost is the price of everything else.
 *
 *   FLOOR_DATABASE=PATH FLOOR_SECRET=lik_… node bench/floor.ts
 *
 * Sends its address to its parent.
 */
import { hash, randomUUIDv7 } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import fastify, { type FastifyReply } from 'fastify';
import { endWithParent } from './processes.ts';

const { FLOOR_DATABASE = ':memory:', FLOOR_SECRET = '' } = process.env;

const STUDIO_ID = 'demo';
const WINDOW_MS = 60_000;
const QUOTA_LIMIT = 1_000_000_000;

interface CaptureBody {
  readonly displayName: string;
  readonly contact: { readonly type: 'email' | 'phone'; readonly value: string };
  readonly sourceId?: string | null;
  readonly note?: string | null;
}

const database = new DatabaseSync(FLOOR_DATABASE);
database.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA cache_size = -65536;
  CREATE TABLE leads (
    studio_id       TEXT NOT NULL,
    id              TEXT NOT NULL,
    display_name    TEXT NOT NULL,
    contact_type    TEXT NOT NULL,
    contact_value   TEXT NOT NULL,
    source_id       TEXT,
    note            TEXT,
    stage           TEXT NOT NULL,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL,
    contact_key     TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    PRIMARY KEY (studio_id, id)
  ) STRICT;
  CREATE UNIQUE INDEX leads_by_contact ON leads (studio_id, contact_key);
  CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_id, idempotency_key);
`);
// Columns are named as in the response, so that a row is the lead.
const LEAD = `id, display_name AS displayName, stage, source_id AS sourceId, note, created_at AS createdAt,
  updated_at AS updatedAt`;
const begin = database.prepare('BEGIN IMMEDIATE');
const commit = database.prepare('COMMIT');
const insert = database.prepare(`
  INSERT INTO leads (
    studio_id, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at, contact_key,
    idempotency_key
  ) VALUES (?, ?, ?, ?, ?, ?, ?, 'new', ?, ?, ?, ?) ON CONFLICT DO NOTHING`);
const selectByKey = database.prepare(`
  SELECT ${LEAD}, contact_type AS contactType, contact_value AS contactValue FROM leads
  WHERE studio_id = ? AND idempotency_key = ?`);
const selectById = database.prepare(`SELECT ${LEAD} FROM leads WHERE studio_id = ? AND id = ?`);
const selectPage = database.prepare(`
  SELECT ${LEAD} FROM leads WHERE studio_id = ? AND id < ? ORDER BY id DESC LIMIT ?`);

/** The callers by the hash of the key, with the count of the current window. */
const callers = new Map([[hash('sha256', FLOOR_SECRET), { studioId: STUDIO_ID, count: 0, windowEndsAt: 0 }]]);

const nullable = (schema: object) => ({ ...schema, type: ['string', 'null'] });
const UUID = { type: 'string', pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' };
const captureSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['displayName', 'contact'],
  properties: {
    displayName: { type: 'string', minLength: 1, maxLength: 160 },
    contact: {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'value'],
      properties: {
        type: { type: 'string', enum: ['email', 'phone'] },
        value: { type: 'string', minLength: 5, maxLength: 254 },
      },
    },
    sourceId: nullable(UUID),
    note: nullable({ minLength: 1, maxLength: 2000 }),
  },
};
const leadSchema = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    displayName: { type: 'string' },
    stage: { type: 'string' },
    sourceId: { type: ['string', 'null'] },
    note: { type: ['string', 'null'] },
    createdAt: { type: 'string' },
    updatedAt: { type: 'string' },
  },
};
const leadResponseSchema = { type: 'object', properties: { lead: leadSchema } };
const leadListSchema = {
  type: 'object',
  properties: { leads: { type: 'array', items: leadSchema }, nextCursor: { type: ['string', 'null'] } },
};

const app = fastify({ ajv: { customOptions: { removeAdditional: false, coerceTypes: false } } });

app.addHook('onRequest', (request, reply, done) => {
  const caller = callers.get(hash('sha256', request.headers.authorization?.slice('Bearer '.length) ?? ''));
  if (!caller) return reply.code(401).send({ code: 'integration_key_invalid' });
  const now = Date.now();
  if (now >= caller.windowEndsAt) {
    caller.count = 0;
    caller.windowEndsAt = now + WINDOW_MS;
  }
  caller.count += 1;
  if (caller.count > QUOTA_LIMIT) return reply.code(429).send({ code: 'integration_rate_limited' });
  done();
});

interface Creation {
  readonly reply: FastifyReply;
  readonly capture: CaptureBody;
  readonly idempotencyKey: string;
}

let pending: Creation[] = [];

app.post<{ Body: CaptureBody; Headers: { 'idempotency-key': string } }>(
  '/v1/integrations/leads',
  {
    schema: {
      body: captureSchema,
      headers: { type: 'object', required: ['idempotency-key'], properties: { 'idempotency-key': UUID } },
      response: { 201: leadResponseSchema },
    },
  },
  (request, reply) => {
    const creation = { reply, capture: request.body, idempotencyKey: request.headers['idempotency-key'] };
    if (pending.push(creation) === 1) setImmediate(commitPending);
  },
);

/** Commits the requests of one turn of the event loop in a transaction, then sends the responses. */
function commitPending(): void {
  const creations = pending;
  pending = [];
  begin.run();
  const answers = creations.map(create);
  commit.run();
  for (const [index, { reply }] of creations.entries()) {
    const { status, body } = answers[index] as Answer;
    reply.code(status).send(body);
  }
}

interface Answer {
  readonly status: number;
  readonly body: object;
}

function create({ capture, idempotencyKey }: Creation): Answer {
  const { displayName, contact, sourceId = null, note = null } = capture;
  const { type, value } = contact;
  const id = randomUUIDv7();
  const now = new Date().toISOString();
  const contactKey = `${type}:${value.toLowerCase()}`;
  const { changes } = insert.run(
    STUDIO_ID,
    id,
    displayName,
    type,
    value,
    sourceId,
    note,
    now,
    now,
    contactKey,
    idempotencyKey,
  );
  if (changes === 1) {
    const lead = { id, displayName, stage: 'new', sourceId, note, createdAt: now, updatedAt: now };
    return { status: 201, body: { lead } };
  }
  const earlier = selectByKey.get(STUDIO_ID, idempotencyKey);
  if (!earlier) return { status: 409, body: { code: 'integration_lead_already_open' } };
  const isSame =
    earlier.displayName === displayName &&
    earlier.contactType === type &&
    earlier.contactValue === value &&
    earlier.sourceId === sourceId &&
    earlier.note === note;
  if (!isSame) return { status: 409, body: { code: 'integration_idempotency_conflict' } };
  return { status: 201, body: { lead: earlier } };
}

app.get<{ Params: { id: string } }>(
  '/v1/integrations/leads/:id',
  { schema: { response: { 200: leadResponseSchema } } },
  (request, reply) => {
    const lead = selectById.get(STUDIO_ID, request.params.id);
    if (lead) reply.send({ lead });
    else reply.code(404).send({ code: 'integration_lead_not_found' });
  },
);

/** Higher than every id. */
const AFTER_ALL_IDS = 'g';

app.get<{ Querystring: { limit: string; cursor?: string } }>(
  '/v1/integrations/leads',
  {
    schema: {
      querystring: {
        type: 'object',
        properties: {
          limit: { type: 'string', pattern: '^([1-9][0-9]?|100)$', default: '25' },
          cursor: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,512}$' },
        },
      },
      response: { 200: leadListSchema },
    },
  },
  (request, reply) => {
    const { cursor } = request.query;
    const limit = Number(request.query.limit);
    const before = cursor === undefined ? AFTER_ALL_IDS : Buffer.from(cursor, 'base64url').toString('latin1');
    const leads = selectPage.all(STUDIO_ID, before, limit + 1);
    const hasMore = leads.length > limit;
    if (hasMore) leads.pop();
    const nextCursor = hasMore ? Buffer.from(String(leads.at(-1)?.id), 'latin1').toString('base64url') : null;
    reply.send({ leads, nextCursor });
  },
);

const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.({ url });
endWithParent();
