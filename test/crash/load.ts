import { setTimeout as sleep } from 'node:timers/promises';
import { vi } from 'vitest';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, type StudioWithKey } from '../support/core-clients.ts';
import { LEADS } from '../support/service.ts';
import type { Chance } from '../tools/chance.ts';

/**
 * The longest time that a caller may wait for a response, whatever fails: many times the gateway's own deadline of 5 s,
 * because a busy machine delays responses; milliseconds.
 */
const ANSWERED_WITHIN_MS = 60_000;

/** How long a caller pauses after a failure; milliseconds. */
const AFTER_FAILURE_MS = 40;

/** The number of concurrent callers. */
const CALLERS = 10;

/** The number of contacts that all callers share. */
const SHARED_CONTACTS = 6;

/** A response; undefined when the connection ended before the response was complete. */
export type Answer = { readonly status: number; readonly code: string | undefined; readonly text: string } | undefined;

/**
 * A request to create a lead, sent any number of times. The note of its lead is its key, so that each lead can be
 * matched to its request.
 */
export interface SentRequest {
  readonly key: string;
  readonly contact: string;
  readonly body: string;
  readonly answers: Answer[];
}

/** The requests to one studio and their responses. */
export interface Ledger {
  readonly studio: StudioWithKey;
  readonly requests: SentRequest[];
  /** Ids of leads that the core reported as closed. */
  readonly closed: Set<string>;
  /** Ids of leads that the core was asked to close, whatever its response. */
  readonly maybeClosed: Set<string>;
  /** Descriptions of reads of acknowledged leads that differ from the acknowledgement. */
  readonly misread: string[];
}

/** Sends a request once more and records the response. */
export async function send(gatewayUrl: string, { studio }: Ledger, request: SentRequest): Promise<Answer> {
  const answer = await ask(gatewayUrl, studio.secret, request);
  request.answers.push(answer);
  return answer;
}

/**
 * Sends a request.
 *
 * @throws Error when neither a response nor the end of the connection comes in time
 */
export async function ask(
  gatewayUrl: string,
  secret: string,
  { key, body }: Pick<SentRequest, 'key' | 'body'>,
): Promise<Answer> {
  const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
  try {
    const response = await fetch(`${gatewayUrl}${LEADS}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': key },
      body,
      signal,
    });
    const text = await response.text();
    return { status: response.status, code: JSON.parse(text).code, text };
  } catch (error) {
    if (signal.aborted) throw new Error(`no answer within ${ANSWERED_WITHIN_MS} ms`, { cause: error });
    return undefined;
  }
}

/** Callers that create leads in a loop without a pause, until they are stopped. */
export interface Load {
  readonly ledger: Ledger;
  /** The number of leads acknowledged so far. */
  created(): number;
  /** Stops the callers and waits for requests in flight. */
  stop(): Promise<Ledger>;
}

/** Waits until `count` more leads are created. */
export async function created(load: Load, count: number): Promise<void> {
  const before = load.created();
  await vi.waitUntil(() => load.created() >= before + count, { timeout: 100_000, interval: 5 });
}

/** Starts load on a service, in a new studio. */
export async function startLoad(gatewayUrl: string, core: CoreClients, chance: Chance): Promise<Load> {
  const ledger: Ledger = {
    studio: await arrangeStudio(core),
    requests: [],
    closed: new Set(),
    maybeClosed: new Set(),
    misread: [],
  };
  const shared = times(SHARED_CONTACTS, () => `${chance.uuid()}@shared.example`);
  let isOver = false;
  let created = 0;
  const callers = times(CALLERS, () => call(chance.branch()));

  return {
    ledger,
    created: () => created,
    async stop() {
      isOver = true;
      await Promise.all(callers);
      return ledger;
    },
  };

  async function call(own: Chance): Promise<void> {
    const mine: SentRequest[] = [];
    while (!isOver) {
      const answers = await Promise.all(choose(own, mine).map((request) => send(gatewayUrl, ledger, request)));
      created += answers.filter((answer) => answer?.status === 201).length;
      for (const answer of answers) {
        if (answer?.status === 201 && own.number() < 0.2) await close(answer.text);
        if (answer?.status === 201 && own.number() < 0.2) await read(answer.text);
      }
      const isFailure = answers.some((answer) => answer === undefined || answer.status >= 500);
      await sleep(isFailure ? AFTER_FAILURE_MS : own.between(0, 4));
    }
  }

  /** Chooses the requests that a caller sends next, concurrently. */
  function choose(own: Chance, mine: SentRequest[]): SentRequest[] {
    const earlier = mine.length > 0 ? own.oneOf(mine) : undefined;
    if (earlier && own.number() < 0.15) return [earlier];
    const key = own.uuid();
    const contact = own.number() < 0.3 ? own.oneOf(shared) : `${key}@example.org`;
    const request = newRequest(key, contact, 'Ada Lovelace');
    mine.push(request);
    switch (own.oneOf(['alone', 'alone', 'alone', 'repeated', 'contradicted'])) {
      case 'repeated':
        return times(own.between(2, 4), () => request);
      case 'contradicted':
        return [request, newRequest(key, contact, 'Ada Byron')];
      default:
        return [request];
    }
  }

  function newRequest(key: string, contact: string, displayName: string): SentRequest {
    const body = JSON.stringify({ displayName, contact: { type: 'email', value: contact }, note: key });
    const request = { key, contact, body, answers: [] };
    ledger.requests.push(request);
    return request;
  }

  async function close(text: string): Promise<void> {
    const leadId = JSON.parse(text).lead.id as string;
    ledger.maybeClosed.add(leadId);
    const change = { studioId: ledger.studio.studioId, leadId, stage: LeadStage.WON };
    await core.leads.changeLeadStage(change, { timeoutMs: ANSWERED_WITHIN_MS }).then(
      () => ledger.closed.add(leadId),
      () => {},
    );
  }

  /** Reads an acknowledged lead. A failed read proves nothing about the lead, least of all that it does not exist. */
  async function read(text: string): Promise<void> {
    const { id, displayName, note, createdAt } = JSON.parse(text).lead;
    const wasClosed = ledger.closed.has(id);
    const answer = await fetch(`${gatewayUrl}${LEADS}/${id}`, {
      headers: { authorization: `Bearer ${ledger.studio.secret}` },
      signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
    })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(() => undefined);
    if (answer?.status === 404) ledger.misread.push(`lead ${id} was acknowledged, and read as ${answer.text}`);
    if (answer?.status !== 200) return;
    const { lead } = JSON.parse(answer.text);
    const isSame = lead.displayName === displayName && lead.note === note && lead.createdAt === createdAt;
    if (!isSame || (wasClosed && lead.stage !== 'won'))
      ledger.misread.push(`lead ${text}${wasClosed ? ', closed,' : ''} was read as ${answer.text}`);
  }
}
