import { isDeepStrictEqual } from 'node:util';
import { readCodings } from './answers.ts';
import type { DriverRequest } from './driver-process.ts';
import { type Exchange, readRetryAfter, wholeAnswerTo } from './exchanges.ts';
import type { Arrival } from './scripted-server.ts';

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** The encodings that a client may ask for. No conversation uses others. Without the header a client would accept any. */
const CODINGS = ['gzip', 'deflate', 'br', 'zstd', 'identity'];

/** The minimum backoff: before the second attempt, and the cap that it reaches by doubling. */
const MIN_FIRST_BACK_OFF_MS = 250;
const MIN_LATE_BACK_OFF_MS = 15_000;

/** The tolerance for rounding: timers and clocks of two processes round differently. */
const ROUNDING_MS = 20;

/** Returns the faults of the requests of a call. */
export function faultsOfRequests(driverRequest: DriverRequest, exchanges: readonly Exchange[]): string[] {
  return exchanges.flatMap(({ arrivals, cursor }, page) =>
    arrivals.flatMap((arrival, index) => {
      const expected = driverRequest.call === 'check' ? ofCheck(driverRequest, page) : driverRequest;
      const faults = [
        ...(arrival.attempt ? [] : ['must not be sent']),
        ...(arrival.request ? faultsOfHead(expected, arrival.request, cursor) : []),
        ...(arrival.body ? faultsOfBody(expected, arrival.body) : []),
        ...faultsOfRepetition(arrivals, index),
      ];
      const name = `attempt ${index + 1}${driverRequest.call === 'allLeads' ? ` of page ${page + 1}` : ''}`;
      return faults.map((fault) => `${name} ${fault}`);
    }),
  );
}

/** The requests of a check: a list of one lead, and then a creation that cannot write. */
const ofCheck = (driverRequest: DriverRequest, index: number): DriverRequest =>
  index === 0
    ? { ...driverRequest, call: 'listLeads', limit: 1 }
    : { ...driverRequest, call: 'createLead', capture: {}, idempotencyKey: '' };

function faultsOfHead(
  driverRequest: DriverRequest,
  request: NonNullable<Arrival['request']>,
  cursor?: string,
): string[] {
  const method = driverRequest.call === 'createLead' ? 'POST' : 'GET';
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://any');
  const { authorization, 'content-type': mediaType, 'user-agent': userAgent } = request.headers;
  const key = readIdempotencyKey(request);
  const faults: string[] = [];
  const expect = (what: string, is: unknown, expected: unknown) => {
    if (!isDeepStrictEqual(is, expected)) faults.push(`has ${what} ${show(is)}, not ${show(expected)}`);
  };
  expect('the method', request.method, method);
  const leads = `${new URL(driverRequest.baseUrl).pathname.replace(/\/+$/, '')}/v1/integrations/leads`;
  if (driverRequest.call === 'getLead') {
    const segment = pathname.startsWith(`${leads}/`) ? pathname.slice(leads.length + 1) : pathname;
    // Percent-encoding is also allowed where it is not needed.
    expect('the path to', segment.includes('/') ? pathname : decoded(segment), driverRequest.leadId);
  } else {
    expect('the path', pathname, leads);
  }
  const { limit } = driverRequest;
  const query = { ...(limit !== undefined && { limit: `${limit}` }), ...(cursor !== undefined && { cursor }) };
  expect('the query', Object.fromEntries(searchParams), query);
  expect('Authorization', authorization, `Bearer ${driverRequest.apiKey}`);
  if (!userAgent?.includes('/')) faults.push(`has User-Agent ${show(userAgent)}, not a name/version`);
  const codings = readCodings(request);
  if (codings.length === 0 || codings.some((each) => !CODINGS.includes(each))) {
    faults.push(`has Accept-Encoding ${show(codings)}, not some of ${CODINGS.join(', ')}`);
  }
  if (method === 'POST') {
    expect('the media type', mediaType?.split(';')[0], 'application/json');
    const isOfCheck = driverRequest.idempotencyKey === '';
    if (isOfCheck) expect('Idempotency-Key', key, undefined);
    if (driverRequest.idempotencyKey) expect('Idempotency-Key', key, driverRequest.idempotencyKey);
    if (!isOfCheck && !UUID.test(`${key}`))
      faults.push(`has Idempotency-Key ${show(key)}, which is not a UUID with hyphens`);
  }
  return faults;
}

function faultsOfBody({ call, capture }: DriverRequest, body: Buffer): string[] {
  if (call !== 'createLead') return body.length === 0 ? [] : ['has a body'];
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return isDeepStrictEqual(withoutNulls(JSON.parse(text)), withoutNulls(capture))
      ? []
      : [`has the body ${text}, not ${show(capture)}`];
  } catch {
    return [`has a body that is not JSON in UTF-8: ${body.toString('latin1')}`];
  }
}

/** Removes nulls: the service treats null as absent, and a client's types need not distinguish the two. */
function withoutNulls(capture: unknown): unknown {
  if (!(capture instanceof Object)) return capture;
  return Object.fromEntries(Object.entries(capture).filter(([, value]) => value !== null));
}

/** Returns the faults of a retry: it must have the key and body of the first attempt, and respect the backoff. */
function faultsOfRepetition(arrivals: readonly Arrival[], index: number): string[] {
  const { [index]: arrival, [index - 1]: before } = arrivals;
  if (!arrival || !before) return [];
  const faults: string[] = [];
  const firstKey = arrivals.map(({ request }) => request && readIdempotencyKey(request)).find(Boolean);
  if (arrival.request && readIdempotencyKey(arrival.request) !== firstKey) {
    faults.push(
      `has another Idempotency-Key than the first attempt: ${readIdempotencyKey(arrival.request)}, not ${firstKey}`,
    );
  }
  const firstBody = arrivals.find(({ body }) => body)?.body;
  if (arrival.body && firstBody && !arrival.body.equals(firstBody)) {
    faults.push(`has a body that differs from that of the first attempt: ${arrival.body}, not ${firstBody}`);
  }
  const repetition = arrivals.slice(0, index).filter(({ request }) => request).length;
  const backOffMs = Math.min(MIN_LATE_BACK_OFF_MS, MIN_FIRST_BACK_OFF_MS * 2 ** (repetition - 1));
  const leastMs = Math.max(backOffMs, (readRetryAfter(wholeAnswerTo(before)) ?? 0) * 1000);
  const waitedMs = before.doneAtMs === undefined ? leastMs : arrival.arrivedAtMs - before.doneAtMs;
  if (waitedMs < leastMs - ROUNDING_MS) faults.push(`comes after ${Math.round(waitedMs)} ms, not ${leastMs} or more`);
  return faults;
}

/** Returns the Idempotency-Key of a request; undefined when it has none. */
export function readIdempotencyKey({ headersDistinct }: NonNullable<Arrival['request']>): string | undefined {
  return headersDistinct['idempotency-key']?.join(' and ');
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const show = (value: unknown): string => JSON.stringify(value) ?? 'none';
