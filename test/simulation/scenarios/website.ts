import fc from 'fast-check';
import { expectDocumentedAnswer } from '../../support/documented.ts';
import { LEADS } from '../../support/service.ts';
import { ownContact, SHARED_CONTACTS, sharedContact } from '../contacts.ts';
import { type EventOf, now, type Operation, type RestAnswer, type SentLead } from '../history.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';
import { keyOf, mostlyFirst, newest, one, recent, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';

/** The longest that a caller may wait for a response, whatever fails; milliseconds. */
export const ANSWERED_WITHIN_MS = 15_000;

/** The number of idempotency keys that a studio's callers use. */
const IDEMPOTENCY_KEYS = 60;

export const where = { url: fc.nat(2), key: mostlyFirst(3) };

/** Selects the lead to create. */
export interface LeadChoice {
  readonly studio: number;
  readonly idempotencyKey: number;
  /** The index of a shared contact, used instead of the key's own; 0: the key's own. */
  readonly otherContact: number;
  readonly otherBody: number;
  readonly source: number;
}

export const leadChoice = fc.record({
  studio,
  idempotencyKey: fc.nat(IDEMPOTENCY_KEYS - 1),
  otherContact: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(SHARED_CONTACTS) }),
  otherBody: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(2) }),
  source: fc.constantFrom(0, 0, 0, 0, 1, 2),
});

/** A website server sends a creation, once or several times concurrently. */
export const create = aScenario({
  weight: 20,
  choice: fc.record({ lead: leadChoice, times: fc.constantFrom(1, 1, 1, 1, 2, 5), ...where }),
  async run(sim, { lead, times, url, key }) {
    const known = studioAt(sim, lead.studio);
    const sent = leadOf(sim, known, lead);
    const { secret } = keyOf(known, key);
    await Promise.all(
      Array.from({ length: times }, (_, index) =>
        sendRequest(sim, known, secret, one(sim.world.urls, url + index), {
          name: 'create',
          lead: sent,
          ...((url + index) % 3 === 2 && { spelled: 'upper' }),
        }),
      ),
    );
  },
});

/** It reads a lead: mostly one of its own studio. */
export const get = aScenario({
  weight: 8,
  choice: fc.record({ studio, lead: recent, ofAnother: mostlyFirst(4), ...where }),
  async run(sim, { studio, lead, ofAnother, url, key }) {
    const known = studioAt(sim, studio);
    const leadId = newest(studioAt(sim, ofAnother === 1 ? 1 - (studio % 2) : studio).leadIds, lead);
    const operation = { name: 'get', leadId: leadId ?? sim.uuid('unknown lead') } as const;
    await sendRequest(sim, known, keyOf(known, key).secret, one(sim.world.urls, url), operation);
  },
});

/** It lists all of its leads, page by page. */
export const list = aScenario({
  weight: 4,
  choice: fc.record({ studio, limit: fc.constantFrom(1, 3, 25, 100), ...where }),
  async run(sim, { studio, limit, url, key }) {
    const known = studioAt(sim, studio);
    const { secret } = keyOf(known, key);
    const walk = sim.newWalk();
    let cursor: string | null = '';
    for (let page = 0; cursor !== null && page < 100; page += 1) {
      const query: string = `?limit=${limit}${cursor && `&cursor=${cursor}`}`;
      const answer = await sendRequest(sim, known, secret, one(sim.world.urls, url + page), {
        name: 'list',
        walk,
        page,
        query,
      });
      if (answer?.status !== 200) return;
      cursor = JSON.parse(answer.text).nextCursor;
    }
  },
});

/** Returns the body of a creation: the same for the same choice. */
export function leadOf(sim: Simulation, { id, sourceIds }: KnownStudio, choice: LeadChoice): SentLead {
  const idempotencyKey = sim.uuid('key', id, choice.idempotencyKey);
  const usual = choice.idempotencyKey % 3 === 0 ? undefined : choice.idempotencyKey % SHARED_CONTACTS;
  const shared = choice.otherContact > 0 ? choice.otherContact - 1 : usual;
  const sourceId = choice.source > 0 ? sourceIds[choice.source - 1] : undefined;
  return {
    idempotencyKey,
    // Not in Unicode's composed form: it is stored as typed.
    displayName: `Jose\u0301 ${sim.personal} ${choice.otherBody === 1 ? 'II' : 'I'}`,
    contact: shared === undefined ? ownContact(sim.personal, idempotencyKey) : sharedContact(sim.personal, shared),
    ...(sourceId !== undefined && { sourceId }),
    note: `${idempotencyKey} ${sim.personal}${choice.otherBody === 2 ? ', and more' : ''}`,
  };
}

/** Sends a request as a website server does, and records the response. */
export async function sendRequest(
  sim: Simulation,
  studio: KnownStudio,
  secret: string,
  url: string,
  operation: Operation,
): Promise<RestAnswer | undefined> {
  const begin = now();
  const answer = await answerTo(sim, secret, url, operation);
  const span = { begin, end: now() };
  recordRequest(sim, { kind: 'request', party: 'website', operation, studioId: studio.id, secret, answer, span });
  return answer;
}

/** Records a request and its response; a lead that it reveals is known to all parties from then on. */
export function recordRequest(sim: Simulation, request: EventOf<'request'>): void {
  sim.history.add(request);
  if (request.answer?.status !== 201) return;
  const { id } = JSON.parse(request.answer.text).lead;
  const { leadIds } = sim.studios.find(({ id }) => id === request.studioId) as KnownStudio;
  if (!leadIds.includes(id)) leadIds.push(id);
}

async function answerTo(
  sim: Simulation,
  secret: string,
  url: string,
  operation: Operation,
): Promise<RestAnswer | undefined> {
  const { method, path, headers, body } = requestOf(operation);
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
    if (signal.aborted) breaksByWaiting(sim, method, path);
    return undefined;
  }
}

export function breaksByWaiting({ history }: Simulation, method: string, path: string): void {
  history.fail(`${method} ${path} is neither answered nor refused in ${ANSWERED_WITHIN_MS} ms`);
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
    sim.history.fail(`an answer is not as documented: ${(error as Error).message}`),
  );
  const { code } = JSON.parse(text);
  return { status: response.status, code, text, headers: response.headers };
}

/** Returns the HTTP request of an operation. */
export function requestOf(operation: Operation): {
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

/** Returns the same as text for the wire. */
export function textOf(operation: Operation, secret: string): string {
  const { method, path, headers, body = '' } = requestOf(operation);
  const length = method === 'GET' ? {} : { 'content-length': `${Buffer.byteLength(body)}` };
  const head = Object.entries({ host: 'x', authorization: `Bearer ${secret}`, ...headers, ...length });
  return `${method} ${path} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}
