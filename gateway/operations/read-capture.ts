import { MIMEType } from 'node:util';
import type { FastifyError, FastifyReply, FastifyRequest, FastifySchemaValidationError, RequestPayload } from 'fastify';
import {
  CONTACT_TYPES,
  contactFault,
  displayNameFault,
  type Fault,
  isContactType,
  noteFault,
  uuidFault,
} from '../../common/rules/field-rules.ts';
import type { LeadCreation } from '../core/core-client.ts';
import { type FaultyField, invalidRequest } from '../problems.ts';
import { leadCaptureSchema } from './schemas.ts';

type CaptureJson = Omit<LeadCreation, 'idempotencyKey' | 'sourceId' | 'note'> &
  Partial<Pick<LeadCreation, 'sourceId' | 'note'>>;

/**
 * Reads the lead to create from a request. Nothing is stripped, coerced or trimmed. All faults are reported together.
 *
 * @param request its body is a Buffer, empty without one
 * @throws Problem integration_invalid_request
 * @rule 2.2.nothing-else 2.5.together 4.1.headers 4.1.5
 */
export function readCapture(request: FastifyRequest): LeadCreation {
  const faults = headerFaults(request);
  const coding = request.headers['content-encoding'] || 'identity';
  const body = parseJson(request.body as Buffer);
  if (coding.toLowerCase() !== 'identity') {
    faults.push({ field: 'Content-Encoding', message: 'must be left out: the body is sent as it is' });
  } else if (body === UNREADABLE) faults.push({ field: 'body', message: 'must be JSON in UTF-8' });
  else for (const fault of [...shapeFaults(request, body), ...valueFaults(body)]) faults.push(fault);
  if (faults.length > 0) throw invalidRequest(faults);

  const { displayName, contact, sourceId = null, note: text = null } = body as CaptureJson;
  const idempotencyKey = request.headers['idempotency-key'] as string;
  return { idempotencyKey, displayName, contact, sourceId, note: text };
}

/**
 * Makes the framework read the body whatever its media type is, so that its faults are reported, too. The type that was
 * sent is still in `headersDistinct`.
 */
export function readAnyMediaType(
  { raw }: FastifyRequest,
  _reply: FastifyReply,
  payload: RequestPayload,
  done: (error: null, payload: RequestPayload) => void,
): void {
  raw.headers['content-type'] = 'application/json';
  done(null, payload);
}

const TOO_LARGE: FaultyField = { field: 'body', message: 'must be at most 32 KiB long' };

/** Adds the faults of headers to that of a body which the framework does not read. @rule 2.5.together */
export function withHeaderFaults(error: FastifyError, request: FastifyRequest): Error {
  return error.code === 'FST_ERR_CTP_BODY_TOO_LARGE' ? invalidRequest([...headerFaults(request), TOO_LARGE]) : error;
}

function headerFaults({ headers, raw }: FastifyRequest): FaultyField[] {
  const idempotencyKey = headers['idempotency-key'];
  return faultsOf({
    'Idempotency-Key': typeof idempotencyKey === 'string' ? keyFault(idempotencyKey) : 'is required',
    'Content-Type': mediaTypeFault(raw.headersDistinct['content-type']),
  });
}

/** Returns the faults of those fields that have one. */
const faultsOf = (messages: Readonly<Record<string, Fault>>): FaultyField[] =>
  Object.entries(messages).flatMap(([field, message]) => (message === undefined ? [] : { field, message }));

/** The IETF draft on this header puts the key in quotes; the contract does not. */
function keyFault(idempotencyKey: string): Fault {
  if (/^".*"$/.test(idempotencyKey)) return 'must be a UUID without quotes around it: leave the quotes out';
  return uuidFault(idempotencyKey);
}

/** @rule 4.1.headers 4.1.body */
function mediaTypeFault(mediaTypes: readonly string[] = []): Fault {
  const [mediaType = '', ...more] = mediaTypes;
  if (more.length > 0) return 'must be given once';
  if (mediaType === 'application/json') return undefined;
  if (essenceOf(mediaType) !== 'application/json') return 'must be application/json';
  // Of a parameter that is given twice, readers take either.
  const charsets = [...mediaType.matchAll(/;\s*charset\s*=\s*("[^"]*"|[^;\s]*)/gi)].map(([, charset = '']) => charset);
  return charsets.every((charset) => /^"?utf-?8"?$/i.test(charset)) ? undefined : 'must be application/json, in UTF-8';
}

function essenceOf(mediaType: string): string | undefined {
  try {
    return new MIMEType(mediaType).essence;
  } catch {
    return undefined;
  }
}

const UNREADABLE = Symbol('unreadable');
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/**
 * JSON.parse keeps a property named `__proto__` as a property like any other, so the schema refuses it by name.
 *
 * @rule 4.1.body
 */
function parseJson(bytes: Buffer): unknown {
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
  // A contact is validated against all shapes; its errors against the shapes of other types are dropped.
  const { type } = propertiesOf(propertiesOf(body).contact);
  const ownShape = `/oneOf/${isContactType(type) ? CONTACT_TYPES.indexOf(type) : 0}/`;
  return (validate.errors ?? [])
    .filter(({ schemaPath }) => !schemaPath.includes('/oneOf/') || schemaPath.includes(ownShape))
    .map(shapeFault)
    .filter((fault) => fault !== undefined);
}

/** Describes an error of the shape; undefined for one of a value, which the core's rule describes. */
function shapeFault({ keyword, instancePath, params }: FastifySchemaValidationError): FaultyField | undefined {
  const parent = instancePath.slice(1).replaceAll('/', '.');
  const child = (name: unknown) => (parent ? `${parent}.${name}` : String(name));
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
  const { displayName, contact, sourceId, note } = propertiesOf(body);
  const { type, value } = propertiesOf(contact);
  return faultsOf({
    displayName: typeof displayName === 'string' ? displayNameFault(displayName) : undefined,
    'contact.value': typeof value === 'string' && isContactType(type) ? contactFault(type, value) : undefined,
    sourceId: typeof sourceId === 'string' ? uuidFault(sourceId) : undefined,
    note: typeof note === 'string' ? noteFault(note) : undefined,
  });
}

function propertiesOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
