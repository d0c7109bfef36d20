import { setTimeout as sleep } from 'node:timers/promises';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../support/builders.ts';
import { arrangeStudio, type CoreClients, type StudioWithKey } from '../support/core-clients.ts';
import { LEADS } from '../support/service.ts';
import type { Chance } from './chance.ts';

/** Nobody waits longer for an answer, whatever becomes of the service; milliseconds. The gateway gives up after 5 s. */
const ANSWERED_WITHIN_MS = 8000;

/** How long a caller waits before it goes on after a failure; milliseconds. */
const AFTER_FAILURE_MS = 40;

/** How many callers there are at once. */
const CALLERS = 10;

/** How many contacts all callers have in common. */
const SHARED_CONTACTS = 6;

/** What a caller was told; undefined when the connection ended before it was told anything whole. */
export type Answer = { readonly status: number; readonly code: string | undefined; readonly text: string } | undefined;

/** A request to create a lead that was sent, any number of times. Its note is its key, so each lead shows whose it is. */
export interface SentRequest {
  readonly key: string;
  readonly contact: string;
  readonly body: string;
  readonly answers: Answer[];
}

/** What was asked of one studio, and what was answered. */
export interface Ledger {
  readonly studio: StudioWithKey;
  readonly requests: SentRequest[];
  /** Ids of leads that the core said it had closed. */
  readonly closed: Set<string>;
  /** Ids of leads that it was asked to close, whatever it said. */
  readonly maybeClosed: Set<string>;
  /** What was read of acknowledged leads and is not what was acknowledged, in words. */
  readonly misread: string[];
}

/** Sends a request once more, and notes what was answered. */
export async function send(gatewayUrl: string, { studio }: Ledger, request: SentRequest): Promise<Answer> {
  const answer = await ask(gatewayUrl, studio.secret, request);
  request.answers.push(answer);
  return answer;
}

/**
 * Sends a request.
 *
 * @throws Error when there is neither an answer nor an end of the connection in time
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

/** Callers who create leads as fast as they are answered, until they are told to stop. */
export interface Load {
  readonly ledger: Ledger;
  /** How many leads they were told were created. */
  created(): number;
  /** Waits for what is under way. */
  stop(): Promise<Ledger>;
}

/** Puts load on a service, in a studio of its own. */
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

  /** What a caller sends next, all at once. */
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

  /** Reads an acknowledged lead. Whoever is not told how it is now is told nothing of it, least of all that it is not there. */
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
