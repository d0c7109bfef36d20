import { captureFault, isContactType } from '../../common/rules/field-rules.ts';
import { expectDocumentedAnswer } from '../support/documented.ts';
import type { RawAnswer } from '../support/raw-http.ts';
import { LEADS, type LeadJson } from '../support/service.ts';
import type { HostileRequest, KeyState } from './hostile-requests.ts';
import type { Exchange } from './raw-client.ts';

/** The kind of a response, for counting: `201 created`, `400 integration_invalid_request`. */
export interface Verdict {
  readonly kind: string;
  /** The fields that the response reports as faulty. */
  readonly fields: readonly string[];
  /** The lead in the response, if it has one. */
  readonly lead?: LeadJson;
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n');

/** Returns a sentence about the rule that an exchange breaks, or the verdict on each of its responses. */
export async function judge(request: HostileRequest, exchange: Exchange): Promise<string | readonly Verdict[]> {
  const { answers, rest, hangs } = exchange;
  if (hangs) return 'gets no response, and its connection stays open';
  // A client that breaks off within a request may have received only 100 Continue.
  const isContinue = request.framing !== 'whole' && rest.equals(CONTINUE);
  if (rest.length > 0 && !isContinue) return `gets an incomplete response: ${rest.toString('latin1')}`;
  const isAnswered = answers.length === 1 || (request.isLong && answers.length === 0);
  if (request.framing === 'whole' ? !isAnswered : request.framing === 'cut' && answers.length > 1)
    return `gets ${answers.length} responses`;
  const verdicts: Verdict[] = [];
  for (const answer of answers) {
    const verdict = verdictOn(answer);
    const fault = (await documentFault(request, answer)) ?? faultFor(request, answer, verdict);
    if (fault !== undefined)
      return `${fault}: ${answer.status} ${answer.body.toString()} ${JSON.stringify(answer.headers)}`;
    verdicts.push(verdict);
  }
  return verdicts;
}

/** Returns how a response differs from the OpenAPI document. */
async function documentFault({ bytes, framing }: HostileRequest, { status, headers, body }: RawAnswer) {
  const [, method = '', target = '/'] = /^([A-Z]+) (?:http:\/\/[^/ ]+)?(\/[^ #]*)/.exec(bytes.toString('latin1')) ?? [];
  // Only a whole request has a known request line.
  const [verb, url] = framing === 'whole' ? [method, target] : ['', ''];
  try {
    await expectDocumentedAnswer(verb, url, new Response(body.length > 0 ? `${body}` : null, { status, headers }));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function verdictOn({ status, headers, body }: RawAnswer): Verdict {
  // The response to HEAD has no body.
  if (body.length === 0) return { kind: `${status} without a body`, fields: [] };
  const { lead, leads, nextCursor, code, fields = {}, ...others } = JSON.parse(body.toString());
  if (status >= 400) return { kind: `${status} ${code}`, fields: Object.keys(fields) };
  if (leads) return { kind: `200 list${nextCursor === null ? '' : ' with more'}`, fields: [] };
  if (!lead) return { kind: `${status} ${others.status}`, fields: [] };
  const how = status === 200 ? 'lead' : headers['idempotent-replayed'] === 'true' ? 'replayed' : 'created';
  return { kind: `${status} ${how}`, fields: [], lead };
}

/** Headers that no response has: they reveal the implementation, admit browsers, or permit caching. */
const FORBIDDEN_HEADERS = /^(?:server|x-powered-by|via|set-cookie|etag|last-modified|access-control-.*)$/;

/** Keys with access to anything. */
const VALID_KEYS = new Set<KeyState>(['good', 'read-only', 'create-only', 'foreign']);

/** Returns the fault of a response, given its request. */
function faultFor(
  request: HostileRequest,
  { status, headers, body }: RawAnswer,
  { kind, lead }: Verdict,
): string | undefined {
  const { key, framing, requestId, capture } = request;
  if (![200, 201].includes(status) && (status < 400 || status > 499)) return 'has a status that is not in the contract';
  if (headers['cache-control'] !== 'no-store') return 'may be cached';
  if (Object.keys(headers).some((name) => FORBIDDEN_HEADERS.test(name))) return 'has a header that it must not have';
  if (headers.location !== (status === 201 ? `${LEADS}/${lead?.id}` : undefined)) return 'has another Location';
  // The gateway ignores the body of a read, so the head suffices.
  const isRead = request.bytes.toString('latin1').startsWith('GET ') && request.bytes.includes('\r\n\r\n');
  if (framing === 'cut' && status < 400 && !isRead) return 'is served although it is incomplete';
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
  return capture && findCaptureFault(capture, kind, lead);
}

/** Returns the fault of the response to a creation that depends on its body alone. */
function findCaptureFault(body: Buffer, kind: string, lead: LeadJson | undefined): string | undefined {
  const capture = readCapture(body);
  if (capture === undefined)
    return kind === '400 integration_invalid_request' ? undefined : 'is not a valid capture, and not refused';
  if (/^409 |^400 integration_source_invalid$/.test(kind)) return undefined;
  if (lead === undefined) return 'is a valid capture, and refused';
  const { displayName, note, sourceId } = capture;
  const isSame =
    lead.displayName === displayName &&
    lead.note === (note ?? null) &&
    lead.sourceId === (sourceId?.toLowerCase() ?? null);
  return isSame || kind === '201 replayed' ? undefined : 'is not the lead that was sent';
}

interface Capture {
  readonly displayName: string;
  readonly contact: { readonly type: string; readonly value: string };
  readonly sourceId?: string | null;
  readonly note?: string | null;
}

/** Parses a creation's body as the contract describes it; returns undefined for any other body. */
function readCapture(body: Buffer): Capture | undefined {
  if (body.length > 32 * 1024 || hasTooManyValues(body.toString())) return undefined;
  let value: Capture;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
  const isText = (field: Parameters<typeof captureFault>[0], text: unknown) =>
    typeof text === 'string' && captureFault(field, text) === undefined;
  const isCapture =
    hasOnly(value, ['displayName', 'contact'], ['sourceId', 'note']) &&
    isText('displayName', value.displayName) &&
    hasOnly(value.contact, ['type', 'value'], []) &&
    isContactType(value.contact.type) &&
    isText(value.contact.type, value.contact.value) &&
    (['sourceId', 'note'] as const).every((field) => (value[field] ?? null) === null || isText(field, value[field]));
  return isCapture ? value : undefined;
}

/** Counts values in the text, because JSON.parse keeps only one of equal names. */
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
