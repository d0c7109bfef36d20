import { expectDocumentedAnswer } from '../../support/documented.ts';
import { LEADS } from '../../support/service.ts';
import { type EventOf, now, type Operation, type RestAnswer } from '../history.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';

/** The longest time that a caller may wait for a response, whatever fails; milliseconds. */
export const ANSWERED_WITHIN_MS = 15_000;

/** The operation that lists one lead. */
export const FIRST_PAGE = { name: 'list', walk: 0, page: 0, query: '?limit=1' } as const;

/** Sends a request as a website server does, and records the response. */
export async function sendRequest(
  sim: Simulation,
  studio: KnownStudio,
  secret: string,
  url: string,
  operation: Operation,
): Promise<RestAnswer | undefined> {
  const begin = now();
  const answer = await byFetch(sim, url, secret, operation);
  const span = { begin, end: now() };
  recordRequest(sim, { kind: 'request', party: 'website', url, operation, studioId: studio.id, secret, answer, span });
  return answer;
}

/** Records a request and its response. From then on, all parties know a lead that it created. */
export function recordRequest(sim: Simulation, request: EventOf<'request'>): void {
  sim.history.add(request);
  if (request.answer?.status !== 201) return;
  const { id } = JSON.parse(request.answer.text).lead;
  const { leadIds } = sim.studios.find(({ id }) => id === request.studioId) as KnownStudio;
  if (!leadIds.includes(id)) leadIds.push(id);
}

/** Sends a request, and returns its complete response; undefined if there is none. */
export async function byFetch(
  sim: Simulation,
  url: string,
  secret: string,
  operation: Operation,
): Promise<RestAnswer | undefined> {
  const { method, path, headers, body } = makeRequest(operation);
  const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
  try {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${secret}`, ...headers },
      signal,
      ...(body !== undefined && { body }),
    });
    return await wholeAnswer(sim, method, path, response);
  } catch {
    if (signal.aborted) sim.history.fail(`${method} ${path} gets no response within ${ANSWERED_WITHIN_MS} ms`);
    return undefined;
  }
}

/** Reads a response completely, and checks it against the API description. */
export async function wholeAnswer(
  sim: Simulation,
  method: string,
  path: string,
  response: Response,
): Promise<RestAnswer> {
  const copy = response.clone();
  const text = await response.text();
  await expectDocumentedAnswer(method, path, copy).catch((error) =>
    sim.history.fail(`a response is not as documented: ${(error as Error).message}`),
  );
  const { code } = JSON.parse(text);
  return { status: response.status, code, text, headers: response.headers };
}

/** Returns the HTTP request of an operation. */
export function makeRequest(operation: Operation): {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
} {
  switch (operation.name) {
    case 'get':
      return { method: 'GET', path: `${LEADS}/${operation.leadId}`, headers: {} };
    case 'list':
      return { method: 'GET', path: LEADS + operation.query, headers: {} };
    case 'create': {
      const { idempotencyKey, ...lead } = operation.lead;
      const spelled = operation.spelled === 'upper' ? idempotencyKey.toUpperCase() : idempotencyKey;
      const headers = { 'content-type': 'application/json', 'idempotency-key': spelled };
      return { method: 'POST', path: LEADS, headers, body: JSON.stringify(lead) };
    }
  }
}
