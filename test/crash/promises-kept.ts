import { expect } from 'vitest';
import { type Lead, LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { allLeads, type CoreClients } from '../support/core-clients.ts';
import { type Answer, ask, type Ledger, type SentRequest } from './load.ts';

/** The number of requests repeated concurrently. */
const AT_ONCE = 16;

/** How often a request is repeated until its outcome is known. */
const MAX_ATTEMPTS = 10;

/** Error codes that guarantee that the request wrote nothing. */
const WROTE_NOTHING = new Set([
  'integration_lead_already_open',
  'integration_rate_unavailable',
  'integration_rate_limited',
]);

/** The final outcome of each request. */
type Settled = ReadonlyMap<SentRequest, NonNullable<Answer>>;

/**
 * Checks a recovered service against all requests and responses, and repeats every request until its outcome is known.
 *
 * @param before the outcomes returned by an earlier check
 * @returns a description of every broken promise
 */
export async function brokenPromises(
  gatewayUrl: string,
  core: CoreClients,
  ledger: Ledger,
  before?: Settled,
): Promise<{ broken: string[]; settled: Settled }> {
  const { requests } = ledger;
  const broken: string[] = [...ledger.misread];
  const holds = (holds: boolean, promise: string) => {
    if (!holds) broken.push(promise);
  };

  // Before any repetition, every acknowledged lead is stored, and no refused one.
  const found = await allLeads(core, ledger.studio.studioId);
  const byId = new Map(found.map((lead) => [lead.id, lead]));
  const byKey = Map.groupBy(found, ({ note }) => note ?? '');
  holdsOfLeads(found);
  for (const [key, ofKey] of Map.groupBy(requests, (request) => request.key)) {
    const answers = ofKey.flatMap((request) => request.answers);
    const isRefused = answers.every((answer) => answer?.code !== undefined && WROTE_NOTHING.has(answer.code));
    if (isRefused && !before) holds(!byKey.has(key), `${key}: is there, although each of its requests was refused`);
    for (const id of new Set(answers.flatMap(findIds)))
      holds(byId.has(id), `${key}: lead ${id} was acknowledged, and is lost`);
  }
  for (const id of ledger.closed) {
    holds(byId.get(id)?.stage === LeadStage.WON, `lead ${id} was closed, and is ${byId.get(id)?.stage}`);
  }
  for (const lead of found) {
    const mayBeWon = ledger.maybeClosed.has(lead.id);
    holds(lead.stage === LeadStage.NEW || mayBeWon, `lead ${lead.id} is ${lead.stage}, although no caller closed it`);
  }

  // When repeated, each request has one outcome, equal to the acknowledged one if any.
  const settled = await repeated();
  // An earlier check has already repeated them.
  const again = before ? settled : await repeated();
  for (const request of requests) {
    const { key } = request;
    const [first, second] = [settled.get(request), again.get(request)];
    const isOutcome = first?.status === 201 || first?.code === 'integration_lead_already_open';
    holds(isOutcome || first?.code === 'integration_idempotency_conflict', `${key}: repeated, ${inShort(first)}`);
    holds(inShort(first) === inShort(second), `${key}: repeated, ${inShort(first)}, then ${inShort(second)}`);
    const earlier = before?.get(request);
    if (earlier)
      holds(inShort(earlier) === inShort(first), `${key}: came to ${inShort(earlier)}, later to ${inShort(first)}`);
    for (const answer of request.answers) {
      if (answer?.status === 201)
        holds(answer.text === first?.text, `${key}: was ${answer.text}, later ${inShort(first)}`);
      else if (answer) holds(isFailure(answer), `${key}: was answered ${inShort(answer)}`);
    }
  }

  // Afterwards there is exactly one lead for each request that succeeded, and no other.
  const inTheEnd = await allLeads(core, ledger.studio.studioId);
  holdsOfLeads(inTheEnd);
  const acknowledged = [...settled.values()].flatMap(findIds);
  const ids = new Set(inTheEnd.map(({ id }) => id));
  for (const id of acknowledged) holds(ids.has(id), `lead ${id} was answered to a repetition, and is not listed`);
  holds(ids.size === new Set(acknowledged).size, `${ids.size} leads for ${new Set(acknowledged).size} acknowledged`);
  return { broken, settled };

  /** Checks that there is one lead per key, and one open lead per contact. */
  function holdsOfLeads(leads: readonly Lead[]): void {
    holds(new Set(leads.map(({ id }) => id)).size === leads.length, 'a lead is listed twice');
    for (const [key, { length }] of Map.groupBy(leads, ({ note }) => note))
      holds(length === 1, `${key}: ${length} leads`);
    const open = leads.filter(({ stage }) => stage !== LeadStage.WON);
    for (const [contact, { length }] of Map.groupBy(open, (lead) => lead.contact?.value.value)) {
      holds(length === 1, `${contact}: ${length} open leads`);
    }
  }

  async function repeated(): Promise<Settled> {
    const outcomes = new Map<SentRequest, NonNullable<Answer>>();
    const waiting = requests.values();
    const repeat = async () => {
      for (const request of waiting) {
        let answer: Answer;
        // An overloaded machine breaks no promise; a service that never responds does.
        for (let attempt = 0; attempt < MAX_ATTEMPTS && (!answer || answer.status === 503); attempt += 1) {
          answer = await ask(gatewayUrl, ledger.studio.secret, request);
        }
        if (answer) outcomes.set(request, answer);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, repeat));
    return outcomes;
  }
}

/** Checks the promises after each round of a test, and finally those of all rounds, because no later round may undo anything. */
export class Rounds {
  readonly #gatewayUrl: string;
  readonly #core: CoreClients;
  #rounds: { readonly ledger: Ledger; readonly settled: Settled; readonly name: string }[] = [];

  constructor(gatewayUrl: string, core: CoreClients) {
    this.#gatewayUrl = gatewayUrl;
    this.#core = core;
  }

  async expectKept(ledger: Ledger, name: string): Promise<void> {
    const { broken, settled } = await brokenPromises(this.#gatewayUrl, this.#core, ledger);
    expect(broken, name).toEqual([]);
    this.#rounds.push({ ledger, settled, name });
  }

  async expectAllKept(): Promise<void> {
    for (const { ledger, settled, name } of this.#rounds) {
      const { broken } = await brokenPromises(this.#gatewayUrl, this.#core, ledger, settled);
      expect(broken, `${name}, after all others`).toEqual([]);
    }
  }

  /** Forgets all rounds, after their data were deleted. */
  clear(): void {
    this.#rounds = [];
  }
}

/** Whether a response is a conflict or a temporary failure, which promises nothing about the final outcome. */
function isFailure({ status, code }: NonNullable<Answer>): boolean {
  return status === 409 || code === 'integration_unavailable' || code === 'integration_rate_unavailable';
}

/** Returns a response without the parts that differ each time. */
function inShort(answer: Answer): string {
  return answer === undefined ? 'no answer' : `${answer.status} ${answer.code ?? answer.text}`;
}

function findIds(answer: Answer): string[] {
  return answer?.status === 201 ? [JSON.parse(answer.text).lead.id] : [];
}
