import { MIMEType } from 'node:util';
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchemaValidationError,
  RequestPayload,
} from 'fastify';
import { headerValues } from '../../common/header-values.ts';
import {
  type CaptureField,
  CONTACT_TYPES,
  type ContactType,
  captureFault,
  type Fault,
  isContactType,
  pageTokenFault,
  uuidFault,
} from '../../common/rules/field-rules.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import type { LeadCreation, PageToRead } from '../core/core-client.ts';
import { type DataPath, type FaultyField, invalidRequest, Problem } from '../problems.ts';
import { hasScopeFor, senderToCheck } from '../request.ts';
import { allowOnly } from './allowed-methods.ts';
import { LEAD_PATH, LEADS_PATH, leadCaptureSchema } from './schemas.ts';

/** Adds the three operations of the public contract. Callers are authenticated and counted before they run. */
export function leadRoutes(app: FastifyInstance): void {
  const { core, config } = app;
  const publicUrl = config.PUBLIC_URL;
  allowOnly(app, LEADS_PATH, 'GET', 'POST');
  allowOnly(app, LEAD_PATH, 'GET');
  // The operation checks the media type and parses the body itself, so that all faults are reported together.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  // A path without the host is right under any host name. It includes the prefix of a public URL.
  const leadsPath = new URL(publicUrl + LEADS_PATH).pathname;

  // @rule 4.1.created 4.1.replayed 4.1.existing-lead
  const create = {
    config: { operation: 'createLead' },
    preParsing: readAnyMediaType,
    errorHandler(error: FastifyError, request: FastifyRequest) {
      // The framework does not read a body that is too large. @rule 2.5.together
      const isTooLarge = error.code === 'FST_ERR_CTP_BODY_TOO_LARGE';
      throw isTooLarge ? invalidRequest([...headerFaults(request), TOO_LARGE]) : error;
    },
  } as const;
  app.post(LEADS_PATH, create, async (request, reply) => {
    const { state } = request;
    const capture = readCapture(request);
    const created = await core.createLead(senderToCheck(state), capture).catch((error) => {
      if (hasScopeFor(state, 'getLead') && error instanceof Problem && error.existingLeadId !== undefined) {
        reply.header('link', `<${publicUrl}${LEADS_PATH}/${error.existingLeadId}>; rel="existing-lead"`);
      }
      throw error;
    });
    const { body, leadId, replayed } = created;
    Object.assign(state, { leadId, replayed });
    if (replayed) reply.header('idempotent-replayed', 'true');
    reply.code(201).header('location', `${leadsPath}/${leadId}`);
    return asJson(reply, body);
  });

  // @rule 4.2.current-state 4.2.id
  app.get<{ Params: { id: string } }>(LEAD_PATH, { config: { operation: 'getLead' } }, async (request, reply) => {
    const { id } = request.params;
    const fault = uuidFault(id);
    if (fault !== undefined) throw invalidRequest([{ field: 'id', message: fault }]);
    request.state.leadId = id;
    return asJson(reply, await core.getLead(senderToCheck(request.state), id));
  });

  // @rule 4.3.paging
  app.get<{ Querystring: QueryString }>(LEADS_PATH, { config: { operation: 'listLeads' } }, async (request, reply) => {
    const list = (page: PageToRead) => core.listLeads(senderToCheck(request.state), page);
    return asJson(reply, await list(await readPage(request.query, list)));
  });
}

/**
 * Returns the core's body unchanged, for the handler to return. If a handler returned the reply, the framework would add a dozen listeners
 * for its end.
 */
function asJson(reply: FastifyReply, body: string): string {
  reply.type('application/json; charset=utf-8');
  return body;
}

/** A query string. A parameter that is given several times has a list of values. */
type QueryString = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Reads the parameters of a list. Only the core can check a cursor: if the limit is invalid, the core gets it with REFUSED_LIMIT.
 *
 * @rule 2.5.together 4.3.limit 4.3.cursor 4.3.parameters 8.limit
 */
async function readPage(
  { limit, cursor }: QueryString,
  list: (page: PageToRead) => Promise<unknown>,
): Promise<PageToRead> {
  const faults: FaultyField[] = [];
  if (limit !== undefined && !isLimit(limit)) {
    faults.push({ field: 'limit', message: `must be given once, as a whole number from 1 to ${PAGE_SIZE.max}` });
  }
  const cursorFault = typeof cursor === 'string' ? pageTokenFault(cursor) : cursor && 'must be given once';
  if (cursorFault) faults.push({ field: 'cursor', message: cursorFault });
  else if (faults.length > 0 && typeof cursor === 'string') {
    const refusal = await list({ limit: REFUSED_LIMIT, cursor }).catch((problem) => problem);
    if (!(refusal instanceof Problem) || refusal.code !== 'integration_invalid_request') throw refusal;
    faults.push(...refusal.faults.filter(({ field }) => field === 'cursor'));
  }
  if (faults.length > 0) throw invalidRequest(faults);
  return { limit: limit === undefined ? PAGE_SIZE.fallback : Number(limit), cursor: cursor as string | undefined };
}

/** A limit that the core refuses. */
const REFUSED_LIMIT = -1;

function isLimit(limit: string | string[]): boolean {
  return typeof limit === 'string' && /^\d+$/.test(limit) && Number(limit) >= 1 && Number(limit) <= PAGE_SIZE.max;
}

const CAPTURE_FIELDS = Object.keys(leadCaptureSchema.properties) as (keyof typeof leadCaptureSchema.properties)[];

/** A body that matches its schema. */
interface CaptureJson {
  readonly contact: { readonly type: ContactType; readonly value: string };
  readonly [text: string]: unknown;
}

/**
 * Reads the lead to create from a request. Nothing is stripped, coerced or trimmed. All faults are reported together.
 *
 * @param request its body is a Buffer, empty without one
 * @throws Problem integration_invalid_request
 * @rule 2.2.nothing-else 2.5.together 4.1.headers 4.1.5
 */
function readCapture(request: FastifyRequest): LeadCreation {
  const faults = headerFaults(request);
  const coding = request.headers['content-encoding'] || 'identity';
  const body = parseJson(request.body as Buffer);
  if (coding.toLowerCase() !== 'identity') {
    faults.push({ field: 'Content-Encoding', message: 'must be left out: the body is sent as it is' });
  } else if (body === UNREADABLE)
    faults.push({ field: 'body', message: `must be JSON in UTF-8 with at most ${MAX_VALUES} values` });
  else for (const fault of [...shapeFaults(request, body), ...valueFaults(body)]) faults.push(fault);
  if (faults.length > 0) throw invalidRequest(faults);

  const { contact, ...texts } = body as CaptureJson;
  return {
    // Null equals a missing property.
    ...Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== null)),
    contact: { value: { case: contact.type, value: contact.value } },
    idempotencyKey: request.headers['idempotency-key'] as string,
  };
}

/** Makes the framework read a body of any media type, so that its faults are also reported. `rawHeaders` keep the original type. */
function readAnyMediaType(
  { raw }: FastifyRequest,
  _reply: FastifyReply,
  payload: RequestPayload,
  done: (error: null, payload: RequestPayload) => void,
): void {
  raw.headers['content-type'] = 'application/json';
  done(null, payload);
}

const TOO_LARGE: FaultyField = { field: 'body', message: 'must be at most 32 KiB long' };

function headerFaults({ headers, raw }: FastifyRequest): FaultyField[] {
  const idempotencyKey = headers['idempotency-key'];
  return toFaultyFields({
    'Idempotency-Key': typeof idempotencyKey === 'string' ? keyFault(idempotencyKey) : 'is required',
    'Content-Type': mediaTypeFault(headerValues(raw, 'content-type')),
  });
}

/** Returns the faults of all faulty fields. */
const toFaultyFields = (messages: Readonly<Partial<Record<FaultyField['field'], Fault>>>): FaultyField[] =>
  Object.entries(messages).flatMap(([field, message]) =>
    message === undefined ? [] : { field: field as FaultyField['field'], message },
  );

/** Returns the fault of a key. The IETF draft on this header puts the key in quotes; the contract does not. */
function keyFault(idempotencyKey: string): Fault {
  if (/^".*"$/.test(idempotencyKey)) return 'must be a UUID without quotes around it: leave the quotes out';
  return uuidFault(idempotencyKey);
}

/** @rule 4.1.headers 4.1.body */
function mediaTypeFault([mediaType = '', ...more]: readonly string[]): Fault {
  if (more.length > 0) return 'must be given once';
  if (mediaType === 'application/json') return undefined;
  if (parseEssence(mediaType) !== 'application/json') return 'must be application/json';
  // All must be UTF-8: readers differ in which of several they take.
  const charsets = [...mediaType.matchAll(/;\s*charset\s*=\s*("[^"]*"|[^;\s]*)/gi)].map(([, charset = '']) => charset);
  return charsets.every((charset) => /^"?utf-?8"?$/i.test(charset)) ? undefined : 'must be application/json, in UTF-8';
}

function parseEssence(mediaType: string): string | undefined {
  try {
    return new MIMEType(mediaType).essence;
  } catch {
    return undefined;
  }
}

/** The maximum number of values in a body, several times as many as a valid one has. Parsing thousands takes longer than serving a request. */
const MAX_VALUES = 100;

const [QUOTE, BACKSLASH, ...BEFORE_VALUE] = Buffer.from('"\\,[{');

/** Returns whether a body has too many values, without parsing it. Stops at the maximum. */
function hasTooManyValues(json: Buffer): boolean {
  let values = 0;
  let inText = false;
  for (let index = 0; index < json.length && values <= MAX_VALUES; index += 1) {
    const byte = json[index] as number;
    if (byte === BACKSLASH) index += 1;
    else if (byte === QUOTE) inText = !inText;
    else if (!inText && BEFORE_VALUE.includes(byte)) values += 1;
  }
  return values > MAX_VALUES;
}

const UNREADABLE = Symbol('unreadable');
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses a body. JSON.parse keeps `__proto__` as an ordinary property, so the schema refuses it by name.
 *
 * @rule 4.1.body
 */
function parseJson(bytes: Buffer): unknown {
  if (hasTooManyValues(bytes)) return UNREADABLE;
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    return UNREADABLE;
  }
}

function shapeFaults(request: FastifyRequest, body: unknown): FaultyField[] {
  const validate =
    request.getValidationFunction(leadCaptureSchema) ?? request.compileValidationSchema(leadCaptureSchema);
  if (validate(body)) return [];
  // A contact is validated against all shapes. Errors against shapes of other types are dropped.
  const { type } = readProperties(readProperties(body).contact);
  const ownShape = `/oneOf/${isContactType(type) ? CONTACT_TYPES.indexOf(type) : 0}/`;
  return (validate.errors ?? [])
    .filter(({ schemaPath }) => !schemaPath.includes('/oneOf/') || schemaPath.includes(ownShape))
    .map(shapeFault)
    .filter((fault) => fault !== undefined);
}

/** Describes an error of the shape; undefined for an error of a value, which the core's rule describes. */
function shapeFault({ keyword, instancePath, params }: FastifySchemaValidationError): FaultyField | undefined {
  const parent = instancePath.slice(1).replaceAll('/', '.') as DataPath;
  const child = (name: unknown) => (parent ? `${parent}.${name}` : String(name)) as DataPath;
  switch (keyword) {
    case 'required':
      return { field: child(params.missingProperty), message: 'is required' };
    case 'additionalProperties':
      return { field: child(params.additionalProperty), message: 'is not a known property' };
    case 'type':
      return { field: parent || 'body', message: `must be ${TYPE_WORDS[String(params.type)] ?? params.type}` };
    case 'const':
      return { field: parent, message: `must be ${CONTACT_TYPES.join(' or ')}` };
    default:
      return undefined;
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  object: 'a JSON object',
  string: 'a string',
  'string,null': 'a string or null',
};

/** Applies the core's own rules to values of the right type. */
function valueFaults(body: unknown): FaultyField[] {
  const values = readProperties(body);
  const { type, value } = readProperties(values.contact);
  const faults = CAPTURE_FIELDS.map((field) =>
    field === 'contact'
      ? ['contact.value', isContactType(type) ? textFault(type, value) : undefined]
      : [field, textFault(field, values[field])],
  );
  return toFaultyFields(Object.fromEntries(faults));
}

const textFault = (field: CaptureField, value: unknown): Fault =>
  typeof value === 'string' ? captureFault(field, value) : undefined;

function readProperties(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
