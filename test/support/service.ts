import { randomUUID } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { forAllTests } from '../tools/for-all-tests.ts';
import { LEADS, postLead } from '../tools/served-service.ts';
import { allLeads, arrangeStudio, type CoreClients, type StudioOptions, type StudioWithKey } from './core-clients.ts';
import { expectDocumentedAnswer, expectDocumentedRequest, PUBLIC_URL } from './documented.ts';
import { type Samples, scrape } from './metrics.ts';
import { runService, type ServiceOverrides, startGatewayAt } from './running-service.ts';

export { LEADS } from '../tools/served-service.ts';
export { BOTH_SCOPES, type StudioWithKey } from './core-clients.ts';
export { PUBLIC_URL } from './documented.ts';
export { CORE_TOKEN } from './running-service.ts';

/** Headers of a request. Null removes a default header. */
type HeaderOverrides = Readonly<Record<string, string | null>>;

/** A core and a gateway in this process, over real sockets, on a temporary database. */
export interface Service extends Omit<CoreClients, 'close'> {
  /** The gateway's address. */
  readonly url: string;
  /** The core's address. */
  readonly coreUrl: string;
  /** Creates a studio with a new id, and a key. */
  aStudioWithKey(options?: StudioOptions): Promise<StudioWithKey>;
  /** Posts a creation, by default with a new Idempotency-Key. Text and bytes are sent as given, others as JSON. */
  post(secret: string, body: unknown, headers?: HeaderOverrides): Promise<Response>;
  /** Reads a path below LEADS, such as `/ID` or `?limit=5`. */
  get(secret: string, path?: string, headers?: HeaderOverrides): Promise<Response>;
  /** Counts the leads of a studio by listing them at the core. */
  countLeads(studioId: string): Promise<number>;
  /** The addresses of metrics that are enabled. */
  readonly gatewayMetricsUrl: string | undefined;
  readonly coreMetricsUrl: string | undefined;
  /** Reads the gateway's metrics; requires GATEWAY_METRICS_ADDRESS. */
  gatewayMetrics(): Promise<Samples>;
  /** Reads the core's metrics; requires CORE_METRICS_ADDRESS. */
  coreMetrics(): Promise<Samples>;
  /** Stops the core but not the gateway. */
  stopCore(): Promise<void>;
  /** Restarts the core on the same port and database. @param overrides of its settings */
  startCore(overrides?: Record<string, string>): Promise<void>;
  /** Stops everything and removes the database. */
  dispose(): Promise<void>;
}

/**
 * Returns a service for all tests of a file or a `describe`. It starts before their hooks and stops after them.
 *
 * @param overrides a function if they depend on earlier hooks
 */
export const aService = (overrides: ServiceOverrides | (() => ServiceOverrides) = {}): Service =>
  forAllTests(
    () => startService(typeof overrides === 'function' ? overrides() : overrides),
    (service) => service.dispose(),
  );

/** Starts a service for one test, stopped at its end. */
export async function aSeparateService(overrides: ServiceOverrides = {}): Promise<Service> {
  const service = await startService(overrides);
  onTestFinished(() => service.dispose());
  return service;
}

/** Returns how many keys gateways have looked up at the core. */
export async function keyLookUps(service: Service): Promise<number> {
  let sum = 0;
  for (const [name, value] of await service.coreMetrics()) {
    if (/^lead_intake_core_call_duration_seconds_count\{.*AuthenticateApiKey/.test(name)) sum += value;
  }
  return sum;
}

/** Starts another gateway of a service's core, stopped at the end of the test. Returns its address. */
export async function anotherGateway({ coreUrl }: Service, overrides: ServiceOverrides = {}): Promise<string> {
  const gateway = await startGatewayAt(coreUrl, overrides);
  onTestFinished(() => gateway.stop());
  return gateway.url;
}

/** Starts a service. The caller must dispose of it. */
export async function startService(overrides: ServiceOverrides = {}): Promise<Service> {
  const { clients, core, ...running } = await runService(overrides);
  const { close: _, ...services } = clients;

  const request = async (method: string, path: string, overrides: HeaderOverrides, body?: Uint8Array<ArrayBuffer>) => {
    const headers = Object.entries(overrides).filter((header): header is [string, string] => header[1] !== null);
    const response = await fetch(`${running.url}${path}`, { method, headers, ...(body && { body }) });
    await expectDocumentedAnswer(method, path, response);
    if (response.ok) expectDocumentedRequest({ method, url: path, headers: new Headers(headers), body });
    return response;
  };

  return {
    ...running,
    ...services,

    aStudioWithKey: (options) => arrangeStudio(clients, options),

    post: (secret, body, headers = {}) =>
      request(
        'POST',
        LEADS,
        {
          authorization: `Bearer ${secret}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
          ...headers,
        },
        toBytes(body),
      ),

    get: (secret, path = '', headers = {}) =>
      request('GET', `${LEADS}${path}`, { authorization: `Bearer ${secret}`, ...headers }),

    countLeads: async (studioId) => (await allLeads(clients, studioId)).length,

    coreMetricsUrl: core().metricsUrl,
    gatewayMetrics: () => scrape(running.gatewayMetricsUrl),
    coreMetrics: () => scrape(core().metricsUrl),
  };
}

/** Returns a valid body of a creation, by default with a new contact. */
export function aCapture(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return { displayName: 'Ada Lovelace', contact: anEmail(), ...overrides };
}

/** Posts a valid creation to a gateway and returns the response, whatever its status. */
export const createAt = (
  gatewayUrl: string,
  secret: string,
  headers: Record<string, string> = {},
  capture = aCapture(),
): Promise<Response> => postLead(gatewayUrl, secret, capture, headers);

/** Returns an email contact, by default a new one. */
export function anEmail(value = `${randomUUID()}@example.org`) {
  return { type: 'email', value };
}

function toBytes(body: unknown): Uint8Array<ArrayBuffer> {
  if (body instanceof Uint8Array) return Uint8Array.from(body);
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
}

/** The body of an error in the contract. */
export interface ProblemJson {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail?: string;
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  readonly requestId: string;
}

/**
 * Checks that an error follows every rule of the contract, and returns its body.
 *
 * @param fields the exact names of the invalid fields; by default any
 */
export async function expectProblem(
  response: Response,
  status: number,
  code: string,
  fields?: readonly string[],
): Promise<ProblemJson> {
  const text = await response.text();
  expect({ status: response.status, text }).toEqual({ status, text: expect.stringContaining(`"code":"${code}"`) });
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  if (status === 401) expect(response.headers.get('www-authenticate')).toBe('Bearer');
  if (status === 429 || status === 503) expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);

  const problem = JSON.parse(text) as ProblemJson;
  const { detail, fields: named, ...required } = problem;
  expect(required).toEqual({
    type: `${PUBLIC_URL}/docs/problems/${code}`,
    title: expect.stringMatching(/./),
    status,
    code: expect.stringMatching(/^[a-z][a-z0-9_]*$/),
    requestId: response.headers.get('x-request-id'),
  });
  expect(problem.requestId).toMatch(/^.{1,128}$/);
  if ('detail' in problem) expect(detail).toMatch(/./);
  if ('fields' in problem) {
    for (const messages of Object.values(named ?? {})) {
      expect(messages.length).toBeGreaterThan(0);
      for (const message of messages) expect(message).toMatch(/./);
    }
  }
  if (fields) expect(Object.keys(named ?? {}).sort()).toEqual([...fields].sort());
  return problem;
}

/** A lead in the contract. */
export interface LeadJson {
  readonly id: string;
  readonly displayName: string;
  readonly stage: string;
  readonly sourceId: string | null;
  readonly note: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

const LEAD_UUID =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|0{8}-0{4}-0{4}-0{4}-0{12}|f{8}-f{4}-f{4}-f{4}-f{12})$/;
const UTC_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z$/;

/** Checks that a lead has exactly the fields of the contract, each within its bounds, and returns it. */
export function expectLead(json: unknown): LeadJson {
  const lead = json as LeadJson;
  expect(lead).toEqual({
    id: expect.stringMatching(LEAD_UUID),
    displayName: expect.any(String),
    stage: expect.stringMatching(/^(?:new|contacted|trial_booked|trial_attended|won|lost)$/),
    sourceId: lead.sourceId === null ? null : expect.stringMatching(LEAD_UUID),
    note: lead.note === null ? null : expect.any(String),
    createdAt: expect.stringMatching(UTC_TIME),
    updatedAt: expect.stringMatching(UTC_TIME),
  });
  const { length } = [...lead.displayName];
  expect(length >= 1 && length <= 160).toBe(true);
  // JavaScript parses a date that does not exist as another date, or not at all.
  for (const time of [lead.createdAt, lead.updatedAt]) {
    expect(new Date(time).toISOString().slice(0, 16)).toBe(time.slice(0, 16));
  }
  return lead;
}

/** Checks that a response has a created or read lead, and returns the lead. */
export async function readLead(response: Response, status = 200): Promise<LeadJson> {
  const text = await response.text();
  expect({ status: response.status, text }).toEqual({ status, text: expect.stringMatching(/^\{"lead":\{/) });
  expect(response.headers.get('content-type')).toMatch(/^application\/json(?:; charset=utf-8)?$/);
  const json = JSON.parse(text);
  expect(Object.keys(json)).toEqual(['lead']);
  return expectLead(json.lead);
}
