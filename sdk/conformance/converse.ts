import { faultsOfReport } from './check-report.ts';
import { faultsOfRequests, idempotencyKeyOf } from './check-requests.ts';
import type { Ask, Call } from './conversation.ts';
import { DriverFault, type DriverProcess, type DriverRequest } from './driver-process.ts';
import { exchangesOf } from './exchanges.ts';
import { type Arrival, ScriptedServer } from './scripted-server.ts';
import shared from './shared.json' with { type: 'json' };
import type { Variant } from './variants.ts';

/** How much later than its deadline a report may come: a machine may be busy, and time is not to decide. */
const PATIENCE_MS = 10_000;

/** Nobody listens at this port: it is of a protocol that there never was. Ports that are free now may be somebody's soon. */
const REFUSING_PORT = 2;

/** What came of a conversation. */
export interface Outcome {
  /** What the client did otherwise than it must; empty when it did all it must. */
  readonly faults: readonly string[];
  /** Why the client's language cannot do what is asked. */
  readonly unsupported?: string;
  /** Whether the driver has not reported, and is not to be asked any more. */
  readonly isDriverLost?: true;
  /** Why this machine cannot hold the conversation. */
  readonly notRun?: string;
}

/**
 * Holds a conversation.
 *
 * @param setClock sets the clock of the driver's machine
 */
export async function converse(
  { calls }: Variant,
  driver: DriverProcess,
  setClock: (aheadSeconds: number) => void,
): Promise<Outcome> {
  const server = new ScriptedServer(setClock);
  await server.start();
  const keys = new Set<string | undefined>();
  const faults: string[] = [];
  try {
    for (const [index, call] of calls.entries()) {
      const { faults: ofCall, ...more } = await hold(call, index + 1, driver, server, keys);
      faults.push(...ofCall.map((fault) => (calls.length > 1 ? `call ${index + 1}: ${fault}` : fault)));
      if (more.unsupported || more.isDriverLost) return { faults, ...more };
    }
  } finally {
    await server.stop();
  }
  return { faults };
}

/** @param keys those that the client has made before; gets the one that it makes now */
async function hold(
  call: Call,
  id: number,
  driver: DriverProcess,
  server: ScriptedServer,
  keys: Set<string | undefined>,
): Promise<Outcome> {
  const asked = requestFor(call.ask, id, baseUrlFor(call, server));
  const arrivals = server.play(call.attempts);
  const withinMs = call.reportWithinMs ?? asked.options.deadlineMs + PATIENCE_MS;
  const report = await driver.ask(asked, withinMs).catch(faultOf);
  const exchanges = exchangesOf(asked, arrivals);
  const ofRequests = [...faultsOfRequests(asked, exchanges), ...reusedKeys(asked, arrivals, keys)];
  if (report instanceof DriverFault) return { faults: [...ofRequests, report.message], isDriverLost: true };
  if (report.unsupported) return { faults: [], unsupported: report.unsupported };
  const ofReport = faultsOfReport(call, asked, exchanges, report);
  return { faults: [...ofRequests, ...missingAttempts(call, arrivals), ...ofReport] };
}

function faultOf(error: unknown): DriverFault {
  if (error instanceof DriverFault) return error;
  throw error;
}

function requestFor(
  { basePath: _, deadlineMs, attemptTimeoutMs, ...ask }: Ask,
  id: number,
  baseUrl: string,
): DriverRequest {
  return {
    id,
    baseUrl,
    apiKey: shared.apiKey,
    options: {
      deadlineMs: deadlineMs ?? shared.deadlineMs,
      attemptTimeoutMs: attemptTimeoutMs ?? shared.attemptTimeoutMs,
    },
    ...(ask.call === 'createLead' && { capture: shared.capture }),
    ...(ask.call === 'getLead' && { leadId: shared.leadId }),
    ...ask,
  };
}

function baseUrlFor({ ask, attempts }: Call, { port }: ScriptedServer): string {
  const isRefused = attempts[0]?.connection === 'refused';
  return `http://127.0.0.1:${isRefused ? REFUSING_PORT : port}${ask.basePath ?? ''}`;
}

/** Attempts that were to come. Those to an address where nobody listens are not seen. */
function missingAttempts({ attempts }: Call, arrivals: readonly Arrival[]): string[] {
  const expected = attempts.filter(({ connection }) => connection !== 'refused').length;
  return arrivals.length < expected ? [`only ${arrivals.length} of ${expected} attempts have come`] : [];
}

/** Two leads under one key are one lead, or a conflict. */
function reusedKeys(asked: DriverRequest, arrivals: readonly Arrival[], known: Set<string | undefined>): string[] {
  if (asked.call !== 'createLead' || asked.idempotencyKey) return [];
  const key = arrivals.map(({ request }) => request && idempotencyKeyOf(request)).find(Boolean);
  const isReused = known.has(key);
  known.add(key);
  return isReused ? [`has the Idempotency-Key of a call before: ${key}`] : [];
}
