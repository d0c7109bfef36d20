import type { RawAnswer } from '../support/raw-http.ts';
import type { LeadJson, ProblemJson } from '../support/service.ts';
import { LEADS, PUBLIC_URL } from '../support/service.ts';
import type { HostileRequest, KeyState } from './hostile-requests.ts';
import type { Exchange } from './raw-client.ts';

/** The kind of a response, for counting: `201 created`, `400 integration_invalid_request`. */
export interface Verdict {
  readonly kind: string;
  /** The fields that the response reports as faulty. */
  readonly fields: readonly string[];
  /** The lead in the response, if it is about one. */
  readonly lead?: LeadJson;
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');

/** Returns a sentence about the rule that an exchange breaks, or the verdict on each of its responses. */
export function judge(request: HostileRequest, exchange: Exchange): string | readonly Verdict[] {
  const { answers, rest, hangs } = exchange;
  if (hangs) return 'gets no response, and its connection stays open';
  // A client that breaks off within a request may have received 100 Continue, and nothing else.
  const isContinue = request.framing !== 'whole' && rest.equals(CONTINUE);
  if (rest.length > 0 && !isContinue) return `gets an incomplete response: ${rest.toString('latin1')}`;
  if (request.framing === 'whole' && answers.length !== 1 && !(request.isLong && answers.length === 0)) {
    return `gets ${answers.length} responses`;
  }
  if (request.framing === 'cut' && answers.length > 1) return `gets ${answers.length} responses`;
  const verdicts: Verdict[] = [];
  for (const answer of answers) {
    const verdict = judgeAnswer(answer);
    const fault = typeof verdict === 'string' ? verdict : faultFor(request, answer, verdict);
    if (fault !== undefined)
      return `${fault}: ${answer.status} ${answer.body.toString()} ${JSON.stringify(answer.headers)}`;
    verdicts.push(verdict as Verdict);
  }
  return verdicts;
}

/** Headers that no response has: they reveal the implementation, admit browsers, or permit caching. */
const FORBIDDEN_HEADERS = /^(?:server|x-powered-by|via|set-cookie|etag|last-modified|access-control-.*)$/;

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Checks a response against the rules for all responses. */
function judgeAnswer(answer: RawAnswer): string | Verdict {
  const { status, headers, body } = answer;
  if (headers['cache-control'] !== 'no-store') return 'may be cached';
  if (!REQUEST_ID.test(headers['x-request-id'] ?? '')) return 'has an invalid request id';
  if (Object.keys(headers).some((name) => FORBIDDEN_HEADERS.test(name))) return 'has a header that it must not have';
  if (status !== 201 && headers.location !== undefined) return 'has a Location';
  if (status >= 400 && status < 500) return judgeProblem(answer);
  if (status !== 200 && status !== 201) return 'has a status that is not in the contract';
  if (headers['content-type'] !== 'application/json; charset=utf-8') return 'has another media type';
  const json = JSON.parse(body.toString());
  if (status === 200 && 'status' in json) return { kind: `200 ${json.status}`, fields: [] };
  if (status === 200 && 'leads' in json) return judgeList(json);
  const fault =
    leadFault(json.lead) ?? (Object.keys(json).length === 1 ? undefined : 'has other properties than a lead');
  if (fault !== undefined) return fault;
  if (status === 201 && headers.location !== `${LEADS}/${json.lead.id}`) return 'has another Location than its lead';
  const kind = status === 200 ? '200 lead' : headers['idempotent-replayed'] === 'true' ? '201 replayed' : '201 created';
  return { kind, fields: [], lead: json.lead };
}

function judgeList(json: { leads: unknown[]; nextCursor: unknown }): string | Verdict {
  const { leads, nextCursor, ...others } = json;
  if (Object.keys(others).length > 0 || leads.length > 100) return 'is not a list of the contract';
  if (nextCursor !== null && !/^[A-Za-z0-9_-]{1,512}$/.test(String(nextCursor))) return 'has an invalid cursor';
  const fault = leads.map(leadFault).find((each) => each !== undefined);
  return fault ?? { kind: `200 list${nextCursor === null ? '' : ' with more'}`, fields: [] };
}

const LEAD_FIELDS = 'createdAt,displayName,id,note,sourceId,stage,updatedAt';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
const STAGE = /^(?:new|contacted|trial_booked|trial_attended|won|lost)$/;

function leadFault(value: unknown): string | undefined {
  const lead = value as LeadJson;
  if (
    Object.keys(lead ?? {})
      .sort()
      .join() !== LEAD_FIELDS
  )
    return 'has other fields than a lead';
  const size = [...lead.displayName].length;
  const isRight =
    UUID.test(lead.id) &&
    size >= 1 &&
    size <= 160 &&
    STAGE.test(lead.stage) &&
    (lead.sourceId === null || UUID.test(lead.sourceId)) &&
    (lead.note === null || typeof lead.note === 'string') &&
    TIME.test(lead.createdAt) &&
    TIME.test(lead.updatedAt);
  return isRight ? undefined : 'has a value that no lead has';
}

const MEMBERS = new Set(['type', 'title', 'status', 'code', 'detail', 'fields', 'requestId']);

/** Checks an error against the contract's description. */
function judgeProblem({ status, headers, body }: RawAnswer): string | Verdict {
  if (headers['content-type'] !== 'application/problem+json') return 'is an error of another media type';
  // The response to HEAD has no body.
  if (body.length === 0) return { kind: `${status} without a body`, fields: [] };
  const problem = JSON.parse(body.toString()) as ProblemJson;
  if (Object.keys(problem).some((name) => !MEMBERS.has(name))) return 'is an error with an unknown property';
  const { type, title, code, detail = 'x', fields = { x: ['x'] }, requestId } = problem;
  if (type !== `${PUBLIC_URL}/docs/problems/${code}` || !/^[a-z][a-z0-9_]*$/.test(code))
    return 'has an invalid type or code';
  if (!title || !detail || problem.status !== status) return 'has an invalid title, detail or status';
  if (requestId !== headers['x-request-id']) return 'has two request ids';
  const names = Object.keys(fields);
  if (names.length === 0 || names.length > 50) return 'names no field, or too many';
  if (Object.values(fields).some((messages) => messages.length === 0 || messages.some((each) => !each))) {
    return 'has no message for a field';
  }
  if (status === 401 && headers['www-authenticate'] !== 'Bearer') return 'has no WWW-Authenticate';
  if (status === 405 && !/^GET(?:, POST)?$/.test(headers.allow ?? '')) return 'has an invalid Allow';
  return { kind: `${status} ${code}`, fields: problem.fields ? names : [] };
}

/** Keys with access to anything at all. */
const VALID_KEYS = new Set<KeyState>(['good', 'read-only', 'create-only', 'foreign']);

/** Returns the fault of a response, given its request. */
function faultFor(
  request: HostileRequest,
  { status, headers, body }: RawAnswer,
  { kind, lead }: Verdict,
): string | undefined {
  const { key, framing, requestId, capture } = request;
  if (framing === 'cut' && status < 400) return 'is served although it is incomplete';
  if (status < 400 && !VALID_KEYS.has(key) && kind !== '200 alive' && kind !== '200 ready')
    return `is served with a key that is ${key}`;
  if (kind.startsWith('201') && key === 'read-only') return 'is served with a key that may only read';
  if ((kind.startsWith('200 l') || kind.endsWith('lead_not_found')) && key === 'create-only')
    return 'is served with a key that may only create';
  // The id in a request that is not valid HTTP cannot be trusted.
  const isUnreadable = headers.connection === 'close' && (status === 400 || status === 431);
  if (requestId !== undefined && headers['x-request-id'] !== requestId && !isUnreadable)
    return 'has lost its request id';
  if (body.includes('Bearer ')) return 'contains a secret';
  return capture && captureFault(capture, kind, lead);
}

/** Returns the fault of the response to a creation that depends on its body alone. */
function captureFault(body: Buffer, kind: string, lead: LeadJson | undefined): string | undefined {
  const capture = readCapture(body);
  if (capture === undefined)
    return kind === '400 integration_invalid_request' ? undefined : 'is not a valid capture, and not refused';
  if (/^409 |^400 integration_source_invalid$/.test(kind)) return undefined;
  if (lead === undefined) return 'is a valid capture, and refused';
  const isSame =
    lead.displayName === capture.displayName &&
    lead.note === (capture.note ?? null) &&
    lead.sourceId === (capture.sourceId?.toLowerCase() ?? null);
  return isSame || kind === '201 replayed' ? undefined : 'is not the lead that was sent';
}

interface Capture {
  readonly displayName: string;
  readonly contact: { readonly type: string; readonly value: string };
  readonly sourceId?: string | null;
  readonly note?: string | null;
}

/** A second, independent implementation of the contract's description of a creation's body; returns undefined for any other body. */
function readCapture(body: Buffer): Capture | undefined {
  if (body.length > 32 * 1024 || hasTooManyValues(body.toString())) return undefined;
  let value: Capture;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
  const isCapture =
    hasOnly(value, ['displayName', 'contact'], ['sourceId', 'note']) &&
    isText(value.displayName, 1, 160) &&
    hasOnly(value.contact, ['type', 'value'], []) &&
    isContact(value.contact) &&
    (value.sourceId === undefined || value.sourceId === null || isUuid(value.sourceId)) &&
    (value.note === undefined || value.note === null || isText(value.note, 1, 2000));
  return isCapture ? value : undefined;
}

/** Values are counted in the text, because of equal names JSON.parse keeps one. */
function hasTooManyValues(json: string): boolean {
  const shape = json.replace(/"(?:[^"\\]|\\.)*"/g, 's');
  return (shape.match(/,|[[{](?=\s*[^\s\]}])/g) ?? []).length > 100;
}

function hasOnly(value: unknown, required: readonly string[], optional: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const names = Object.keys(value);
  return (
    required.every((name) => names.includes(name)) && names.every((name) => [...required, ...optional].includes(name))
  );
}

function isText(value: unknown, min: number, max: number): value is string {
  if (typeof value !== 'string' || /\0|\p{Surrogate}/u.test(value)) return false;
  const { length } = [...value];
  return length >= min && length <= max;
}

function isContact({ type, value }: Capture['contact']): boolean {
  if (type === 'phone') return isText(value, 5, 64) && /(?:\p{Nd}\P{Nd}*){3}/u.test(value);
  return type === 'email' && isText(value, 1, 254) && /^[^@\s\p{Cc}]+@[^@\s\p{Cc}]+$/u.test(value);
}

function isUuid(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    (UUID.test(value.toLowerCase()) || /^(?:0{8}(?:-0{4}){3}-0{12}|f{8}(?:-f{4}){3}-f{12})$/i.test(value))
  );
}
