import { type Lead, LeadStage, LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CoreClients } from '../support/core-clients.ts';
import { type Answer, ask, type Ledger, type SentRequest } from './load.ts';

/** How many requests are repeated at once. */
const AT_ONCE = 16;

/** How often a request is repeated until it has an outcome. */
const MAX_ATTEMPTS = 10;

/** Answers that promise that the request wrote nothing. */
const WROTE_NOTHING = new Set([
  'integration_lead_already_open',
  'integration_rate_unavailable',
  'integration_rate_limited',
]);

/** What each request came to, once and for all. */
export type Settled = ReadonlyMap<SentRequest, NonNullable<Answer>>;

/**
 * Holds a service that works again against everything that was asked of it and everything it answered, and has every request
 * settled by repeating it.
 *
 * @param before what the requests came to when this was asked before
 * @returns every promise that was broken, in words
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

  // Before anything is repeated: what was answered is there, and nothing else that was refused.
  const found = await allLeads(core, ledger.studio.studioId);
  const byId = new Map(found.map((lead) => [lead.id, lead]));
  const byKey = Map.groupBy(found, ({ note }) => note ?? '');
  holdsOfLeads(found);
  for (const [key, ofKey] of Map.groupBy(requests, (request) => request.key)) {
    const answers = ofKey.flatMap((request) => request.answers);
    const isRefused = answers.every((answer) => answer?.code !== undefined && WROTE_NOTHING.has(answer.code));
    if (isRefused && !before) holds(!byKey.has(key), `${key}: is there, although each of its requests was refused`);
    for (const id of new Set(answers.flatMap(idOf)))
      holds(byId.has(id), `${key}: lead ${id} was acknowledged, and is lost`);
  }
  for (const id of ledger.closed) {
    holds(byId.get(id)?.stage === LeadStage.WON, `lead ${id} was closed, and is ${byId.get(id)?.stage}`);
  }
  for (const lead of found) {
    const mayBeWon = ledger.maybeClosed.has(lead.id);
    holds(lead.stage === LeadStage.NEW || mayBeWon, `lead ${lead.id} is ${lead.stage}, and nobody closed it`);
  }

  // Repeated, each request has one outcome, the one that was acknowledged if any was.
  const settled = await repeated();
  const again = await repeated();
  for (const request of requests) {
    const { key } = request;
    const [first, second] = [settled.get(request), again.get(request)];
    const isOutcome = first?.status === 201 || first?.code === 'integration_lead_already_open';
    holds(isOutcome || first?.code === 'integration_idempotency_conflict', `${key}: repeated, ${told(first)}`);
    holds(told(first) === told(second), `${key}: repeated, ${told(first)}, then ${told(second)}`);
    const earlier = before?.get(request);
    if (earlier) holds(told(earlier) === told(first), `${key}: came to ${told(earlier)}, later to ${told(first)}`);
    for (const answer of request.answers) {
      if (answer?.status === 201)
        holds(answer.text === first?.text, `${key}: was ${answer.text}, later ${told(first)}`);
      else if (answer) holds(isFailure(answer), `${key}: was answered ${told(answer)}`);
    }
  }

  // Afterwards there is one lead for each request that came to one, and no other.
  const inTheEnd = await allLeads(core, ledger.studio.studioId);
  holdsOfLeads(inTheEnd);
  const acknowledged = [...settled.values()].flatMap(idOf);
  const ids = new Set(inTheEnd.map(({ id }) => id));
  for (const id of acknowledged) holds(ids.has(id), `lead ${id} was answered to a repetition, and is not listed`);
  holds(ids.size === new Set(acknowledged).size, `${ids.size} leads for ${new Set(acknowledged).size} acknowledged`);
  return { broken, settled };

  /** One lead for each key, one open lead for each contact. */
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
        // A machine that has too much to do is no broken promise; a service that never answers again is one.
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

/** What a caller may be told in the trouble, and has to make nothing of. */
function isFailure({ status, code }: NonNullable<Answer>): boolean {
  return status === 409 || code === 'integration_unavailable' || code === 'integration_rate_unavailable';
}

/** An answer, but for what is new in each. */
function told(answer: Answer): string {
  return answer === undefined ? 'no answer' : `${answer.status} ${answer.code ?? answer.text}`;
}

function idOf(answer: Answer): string[] {
  return answer?.status === 201 ? [JSON.parse(answer.text).lead.id] : [];
}

/** All leads of a studio, as the core lists them, with their contacts. */
export async function allLeads({ leads }: CoreClients, studioId: string): Promise<Lead[]> {
  const all: Lead[] = [];
  let pageToken = '';
  do {
    const page = await leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.FULL });
    all.push(...page.leads);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return all;
}
