import fc from 'fast-check';
import { createLeadIntakeClient, type LeadIntakeClient } from '../../../sdk/index.ts';
import { type EventOf, now, type Operation } from '../history.ts';
import { type SdkOutcome, sdkViolations } from '../promises/sdk.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';
import { keyOf, lasting, one, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';
import { leadChoice, leadOf, recordRequest, requestOf, where, wholeAnswer } from './website.ts';

/** The deadline of a call of the SDK, and of each of its attempts; milliseconds. */
const patience = fc.record({
  deadlineMs: fc.constantFrom(2500, 8000, 15_000),
  attemptTimeoutMs: fc.constantFrom(200, 2000, 10_000),
  /** When the caller aborts the call; 0: never. */
  givesUpAfterMs: fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 40 }) },
    { weight: 1, arbitrary: lasting(1, 3000) },
  ),
});

type Patience = typeof patience extends fc.Arbitrary<infer Choice> ? Choice : never;

/** A website server creates a lead by the SDK. */
export const createBySdk = aScenario({
  weight: 8,
  choice: fc.record({ lead: leadChoice, patience, ...where }),
  async run(sim, { lead, patience, url, key }) {
    const studio = studioAt(sim, lead.studio);
    const sent = leadOf(sim, studio, lead);
    const { idempotencyKey, ...capture } = sent;
    await call(
      sim,
      studio,
      { url, key, patience, operationOf: () => ({ name: 'create', lead: sent }) },
      (client, options) => client.createLead(capture, { idempotencyKey, ...options }),
    );
  },
});

/** It lists all of its leads by the SDK. */
export const listBySdk = aScenario({
  weight: 3,
  choice: fc.record({ studio, limit: fc.constantFrom(1, 3, 25, 100), patience, ...where }),
  async run(sim, { studio, limit, patience, url, key }) {
    const walk = sim.newWalk();
    let page = 0;
    const operationOf = ({ search }: URL): Operation => {
      page += 1;
      return { name: 'list', walk, page, query: search };
    };
    await call(sim, studioAt(sim, studio), { url, key, patience, operationOf }, (client, options) =>
      Array.fromAsync(client.allLeads({ limit, ...options })),
    );
  },
});

/** The parameters of a call, besides its operation. */
interface Calling {
  readonly url: number;
  readonly key: number;
  readonly patience: Patience;
  /** Returns the operation of an attempt, by its address. */
  readonly operationOf: (url: URL) => Operation;
}

/** Records each attempt of a call as a separate request, and checks the SDK's result against them. */
async function call<T>(
  sim: Simulation,
  studio: KnownStudio,
  { url, key, patience, operationOf }: Calling,
  made: (client: LeadIntakeClient, options: { readonly signal?: AbortSignal }) => Promise<T>,
): Promise<void> {
  const { givesUpAfterMs, ...deadlines } = patience;
  const { secret } = keyOf(studio, key);
  const attempts: EventOf<'request'>[] = [];
  const client = createLeadIntakeClient({
    baseUrl: one(sim.world.urls, url),
    apiKey: secret,
    ...deadlines,
    fetch: async (input, init = {}) => {
      const begin = now();
      const operation = operationOf(new URL(`${input}`));
      const { method, path } = requestOf(operation);
      let answer: EventOf<'request'>['answer'];
      try {
        const response = await fetch(input, init);
        answer = await wholeAnswer(sim, method, path, response);
        return new Response(answer.text, { status: answer.status, headers: answer.headers });
      } finally {
        const span = { begin, end: now() };
        const gaveUp = init.signal?.aborted ?? false;
        attempts.push({ kind: 'request', party: 'SDK', operation, studioId: studio.id, secret, answer, gaveUp, span });
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
