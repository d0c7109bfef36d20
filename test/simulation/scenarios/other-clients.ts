import { anyUnpack } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { hashKeySecret } from '../../../common/rules/key-secret.ts';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ExchangeResult } from '../../../proto/gen/leadintake/v1/exchange_pb.ts';
import { createLeadIntakeClient, type LeadIntakeClient } from '../../../sdk/index.ts';
import { inCall } from '../contacts.ts';
import { type EventOf, now, type Operation } from '../history.ts';
import { type SdkOutcome, sdkViolations } from '../promises/sdk.ts';
import { CRM_TIMEOUT, type KnownStudio, type Simulation } from '../simulation.ts';
import { chooseKey, lasting, one, studio, studioAt } from './choices.ts';
import { asFarAsDefinite, untilDefinite } from './definite-outcomes.ts';
import { ANSWERED_WITHIN_MS, makeRequest, recordRequest, wholeAnswer } from './requests.ts';
import { aScenario } from './scenario.ts';
import { makeKey, makeSeparateStudio, separateLead } from './separate-studio.ts';
import { formerIn, leadChoice, makeLead, where } from './website.ts';

// Requests with the SDK, malformed requests, and requests that a gateway sends to a core.

/** Chooses the deadlines of an SDK call and of each of its attempts; milliseconds. */
const patience = fc.record({
  deadlineMs: fc.constantFrom(2500, 15_000),
  attemptTimeoutMs: fc.constantFrom(200, 2000, 10_000),
  /** When the caller aborts the call; 0: never. */
  givesUpAfterMs: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: lasting(1, 300) }),
});

type Patience = typeof patience extends fc.Arbitrary<infer Choice> ? Choice : never;

/** Creates a lead with the SDK. */
export const createBySdk = aScenario({
  weight: 8,
  choice: fc.record({ lead: leadChoice, patience, ...where }),
  async run(sim, { lead, patience, url, key }) {
    const studio = studioAt(sim, lead.studio);
    const sent = makeLead(sim, studio, lead);
    const { idempotencyKey, ...capture } = sent;
    const calling = { url, key, patience, findOperation: () => ({ name: 'create', lead: sent }) as const };
    await call(sim, studio, calling, (client, options) => client.createLead(capture, { idempotencyKey, ...options }));
  },
});

/** More leads than any studio has: a longer list would never end. */
const MAX_LEADS = 500;

/** Lists all leads of a studio with the SDK. */
export const listBySdk = aScenario({
  weight: 3,
  choice: fc.record({ studio, limit: fc.constantFrom(1, 25), patience, ...where }),
  async run(sim, { studio, limit, patience, url, key }) {
    const walk = sim.newWalk();
    let page = 0;
    const findOperation = ({ search }: URL): Operation => {
      page += 1;
      return { name: 'list', walk, page, query: search };
    };
    await call(sim, studioAt(sim, studio), { url, key, patience, findOperation }, async (client, options) => {
      const leads: unknown[] = [];
      for await (const lead of client.allLeads({ limit, ...options })) if (leads.push(lead) > MAX_LEADS) break;
      return leads;
    });
  },
});

/** The parameters of a call, besides its operation. */
interface Calling {
  readonly url: number;
  readonly key: number;
  readonly patience: Patience;
  /** Returns the operation of an attempt by its URL. */
  readonly findOperation: (url: URL) => Operation;
}

/** Makes an SDK call, records each of its attempts as a request, and checks the result against them. */
async function call<T>(
  sim: Simulation,
  studio: KnownStudio,
  { url, key, patience, findOperation }: Calling,
  made: (client: LeadIntakeClient, options: { readonly signal?: AbortSignal }) => Promise<T>,
): Promise<void> {
  const { givesUpAfterMs, ...deadlines } = patience;
  const { secret } = chooseKey(studio, key);
  const attempts: EventOf<'request'>[] = [];
  const baseUrl = one(sim.world.urls, url);
  const client = createLeadIntakeClient({
    baseUrl,
    apiKey: secret,
    ...deadlines,
    fetch: async (input, init = {}) => {
      const begin = now();
      const operation = findOperation(new URL(`${input}`));
      const { method, path } = makeRequest(operation);
      let answer: EventOf<'request'>['answer'];
      try {
        const response = await fetch(input, init);
        answer = await wholeAnswer(sim, method, path, response);
        return new Response(answer.text, { status: answer.status, headers: answer.headers });
      } finally {
        const span = { begin, end: now() };
        const gaveUp = init.signal?.aborted ?? false;
        const sent = { url: baseUrl, operation, studioId: studio.id, secret };
        attempts.push({ kind: 'request', party: 'SDK', ...sent, answer, gaveUp, span });
      }
    },
  });
  const signal = givesUpAfterMs > 0 ? AbortSignal.timeout(givesUpAfterMs) : undefined;
  const begin = now();
  const outcome: SdkOutcome = await made(client, signal ? { signal } : {}).then(
    (result) => ({ result }),
    (error) => ({ error }),
  );
  const sdkCall = { attempts, outcome, deadlineMs: patience.deadlineMs, tookMs: now() - begin };
  for (const violation of sdkViolations(sdkCall)) sim.history.fail(violation);
  const wroteNothing = outcome.error?.written === 'no';
  for (const attempt of attempts) recordRequest(sim, { ...attempt, wroteNothing });
}

/** Sends a malformed creation, or one with a name one letter too long. It must create nothing. */
export const sendWrongForm = aScenario({
  weight: 3,
  choice: fc.record({
    studio,
    fault: fc.constantFrom('charset', 'unknown field', 'cut', 'no key', 'packed', 'long name'),
    former: fc.option(fc.nat(3)),
    ...where,
  }),
  async run(sim, { studio: index, fault, former, url, key }) {
    const used = former === null ? undefined : formerIn(sim, index, former);
    const [begin, studio] = [now(), used?.known ?? studioAt(sim, index)];
    const lead = separateLead(sim, studio.id, `malformed at ${begin}`);
    const operation = { name: 'create', lead } as const;
    const { method, path, headers, body = '' } = makeRequest(operation);
    const { 'idempotency-key': _, ...others } = headers;
    const changed = {
      charset: [{ ...headers, 'content-type': 'application/json; charset=iso-8859-1' }, body],
      'unknown field': [headers, JSON.stringify({ ...JSON.parse(body), stage: 'won' })],
      cut: [headers, body.slice(0, -2)],
      'no key': [others, body],
      packed: [{ ...headers, 'content-encoding': 'gzip' }, body],
      'long name': [headers, JSON.stringify({ ...JSON.parse(body), displayName: 'x'.repeat(161) })],
    } as const;
    const [sentHeaders, sentBody] = changed[fault as keyof typeof changed];
    const secret = used?.secret ?? chooseKey(studio, key).secret;
    const request = { method, headers: { ...sentHeaders, authorization: `Bearer ${secret}` }, body: sentBody };
    const signal = AbortSignal.timeout(ANSWERED_WITHIN_MS);
    const baseUrl = one(sim.world.urls, url);
    const answer = await fetch(baseUrl + path, { ...request, signal })
      .then((response) => wholeAnswer(sim, method, path, response))
      .catch(() => undefined);
    const span = { begin, end: now() };
    const party = `website (${fault})`;
    const sent = { url: baseUrl, operation, studioId: studio.id, secret };
    sim.history.add({ kind: 'request', party, ...sent, answer, span });
    if (answer?.status === 201) sim.history.fail(`a creation with the fault "${fault}" gets 201: ${answer.text}`);
    const isComplete = answer?.headers.has('ratelimit') && answer.headers.has('x-request-id');
    if (answer?.status === 400 && !isComplete)
      sim.history.fail(`the answer to the fault "${fault}" has no request id or no quota: ${answer.text}`);
  },
});

/** Sends items in one message, as a gateway does: with keys that have one scope, and with an invalid key. */
export const sendItems = aScenario({
  weight: 1,
  choice: fc.record({ core: fc.nat(1), order: fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }) }),
  run: (sim, { core, order }) =>
    asFarAsDefinite(async () => {
      const { id, secret } = await makeSeparateStudio(sim);
      const scoped = async (scope: ApiKeyScope) => hashKeySecret((await makeKey(sim, id, [scope])).secret);
      const [reads, creates] = [await scoped(ApiKeyScope.LEADS_READ), await scoped(ApiKeyScope.LEADS_CREATE)];
      const noKey = Buffer.concat([creates, Buffer.from('more')]);
      const creation = (name: string) => {
        const { contact, ...lead } = separateLead(sim, id, name);
        return {
          case: 'createLead',
          value: { ...lead, contact: inCall(contact) },
        } as const;
      };
      const list = { case: 'listLeads', value: {} } as const;
      const unknown = { case: 'getLead', value: { leadId: sim.uuid('unknown lead') } } as const;
      const all = [
        { secretSha256: creates, request: creation('first'), expected: 'body' },
        { secretSha256: reads, request: creation('second'), expected: 'SCOPE_FORBIDDEN' },
        { secretSha256: noKey, request: creation('third'), expected: 'INVALID_REQUEST' },
        { secretSha256: creates, request: list, expected: 'SCOPE_FORBIDDEN' },
        { secretSha256: hashKeySecret(secret), request: unknown, expected: 'LEAD_NOT_FOUND' },
        { secretSha256: reads, request: { case: 'authenticate', value: {} } as const, expected: 'bearer' },
      ];
      const items = order.map((index) => all[index] as (typeof all)[number]);
      async function* messages() {
        yield { items: items.map(({ expected, ...item }) => item) };
      }
      const found = await untilDefinite(sim, 'items with keys of one scope each', async () => {
        const outcomes: (string | undefined)[] = items.map(() => undefined);
        try {
          for await (const { results } of sim.crmAt(core).exchange.exchange(messages(), CRM_TIMEOUT))
            for (const result of results) outcomes[result.index] = describeOutcome(result);
        } catch {
          return undefined;
        }
        return outcomes.every((outcome) => outcome !== undefined) ? outcomes : undefined;
      });
      const expected = items.map((item) => item.expected);
      if (`${found}` !== `${expected}`) sim.history.fail(`${id}: items are answered with ${found}, not ${expected}`);
    }),
});

function describeOutcome({ outcome }: ExchangeResult): string | undefined {
  if (outcome.case !== 'error') return outcome.case;
  const infos = outcome.value.details.map((detail) => anyUnpack(detail, ErrorInfoSchema));
  return infos.find((info) => info?.domain === 'leadintake')?.reason;
}

/** Probes the readiness or the liveness of a gateway. */
export const askForHealth = aScenario({
  weight: 1,
  choice: fc.record({ url: fc.nat(2), path: fc.constantFrom('/healthz', '/readyz') }),
  async run(sim, { url, path }) {
    const begin = now();
    const options = { headers: { connection: 'close' }, signal: AbortSignal.timeout(ANSWERED_WITHIN_MS) };
    const status = await fetch(one(sim.world.urls, url) + path, options).then(
      async (response) => {
        await response.text();
        return response.status;
      },
      () => 0,
    );
    sim.history.note('probe', `${path} ${status}`, begin);
    const isExcused = sim.isDisturbedSince(begin) && (status === 0 || (status === 503 && path === '/readyz'));
    if (status !== 200 && !isExcused) sim.history.fail(`${path} is answered with ${status}`);
  },
});
