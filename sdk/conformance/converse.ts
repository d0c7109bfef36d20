import { faultsOfReport } from './check-report.ts';
import { faultsOfRequests, readIdempotencyKey } from './check-requests.ts';
import type { Breakage, Call } from './conversation.ts';
import { DriverFault, type DriverProcess, type DriverRequest } from './driver-process.ts';
import { groupExchanges } from './exchanges.ts';
import { type Arrival, ScriptedServer } from './scripted-server.ts';
import shared from './shared.json' with { type: 'json' };
import type { Variant } from './variants.ts';

/** How long after its deadline a report may arrive. Long enough that no conversation fails because the machine is busy. */
const REPORT_MARGIN_MS = 10_000;

/** The deadline of a call that the client must refuse. It is short, in case the client sends the request. */
const REFUSED_DEADLINE_MS = 2000;

/** A port without a listener, reserved for a protocol that never existed. Another program may take a port that is merely free. */
const REFUSING_PORT = 2;

/** The outcome of a conversation. */
export interface Outcome {
  /** Deviations of the client from the required behaviour; empty when there are none. */
  readonly faults: readonly string[];
  /** Why the client's language does not support the call. */
  readonly unsupported?: string;
  /** Whether the driver did not report; the process must not be used again. */
  readonly isDriverLost?: true;
  /** Why this machine cannot run the conversation. */
  readonly notRun?: string;
}

/**
 * Runs a conversation.
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
  const isUntrusted = calls.some(({ attempts }) => attempts[0]?.connection === 'untrusted');
  if (isUntrusted) await server.startUntrusted();
  const keys = new Set<string | undefined>();
  let unsupported: string | undefined;
  try {
    for (const [index, call] of calls.entries()) {
      const { faults: ofCall, ...more } = await runCall(call, index + 1, driver, server, keys);
      const faults = ofCall.map((fault) => (calls.length > 1 ? `call ${index + 1}: ${fault}` : fault));
      // Further calls would take as long, and fail for the same reason.
      if (faults.length > 0) return { faults, ...more };
      unsupported ??= more.unsupported;
    }
  } finally {
    await server.stop();
  }
  return { faults: [], ...(unsupported !== undefined && { unsupported }) };
}

/** @param keys the keys that the client generated before; the new one is added */
async function runCall(
  call: Call,
  id: number,
  driver: DriverProcess,
  server: ScriptedServer,
  keys: Set<string | undefined>,
): Promise<Outcome> {
  const driverRequest = requestFor(call, id, baseUrlFor(call, server));
  const arrivals = server.play(call.attempts);
  const withinMs = call.reportWithinMs ?? driverRequest.options.deadlineMs + REPORT_MARGIN_MS;
  const report = await driver.run(driverRequest, withinMs).catch(toFault);
  const exchanges = groupExchanges(driverRequest, arrivals);
  const ofRequests = [...faultsOfRequests(driverRequest, exchanges), ...reusedKeys(driverRequest, arrivals, keys)];
  if (report instanceof DriverFault) return { faults: [...ofRequests, report.message], isDriverLost: true };
  if (report.unsupported) return { faults: [], unsupported: report.unsupported };
  const ofReport = faultsOfReport(call, driverRequest, exchanges, report);
  return { faults: [...ofRequests, ...missingAttempts(call, arrivals), ...ofReport] };
}

function toFault(error: unknown): DriverFault {
  if (error instanceof DriverFault) return error;
  throw error;
}

function requestFor(
  { report, request: { basePath: _, deadlineMs, attemptTimeoutMs, ...request } }: Call,
  id: number,
  baseUrl: string,
): DriverRequest {
  return {
    id,
    baseUrl,
    apiKey: shared.apiKey,
    options: {
      deadlineMs: deadlineMs ?? (report === 'refused' ? REFUSED_DEADLINE_MS : shared.deadlineMs),
      attemptTimeoutMs: attemptTimeoutMs ?? shared.attemptTimeoutMs,
    },
    ...(request.call === 'createLead' && { capture: shared.capture }),
    ...(request.call === 'getLead' && { leadId: shared.leadId }),
    ...request,
  };
}

function baseUrlFor({ request, attempts }: Call, server: ScriptedServer): string {
  const path = request.basePath ?? '';
  switch (attempts[0]?.connection) {
    case 'unresolved':
      return `https://nowhere.invalid${path}`;
    case 'not-tls':
    case 'tls-refused':
    case 'tls-closed':
      return `https://127.0.0.1:${server.port}${path}`;
    case 'refused':
      return `http://127.0.0.1:${REFUSING_PORT}${path}`;
    case 'untrusted':
      return `https://127.0.0.1:${server.untrustedPort}${path}`;
    default:
      return `http://127.0.0.1:${server.port}${path}`;
  }
}

/** Breakages that let no request arrive. Attempts with them cannot be observed and do not count. */
const UNOBSERVED: readonly (Breakage | undefined)[] = [
  'unresolved',
  'refused',
  'untrusted',
  'not-tls',
  'tls-refused',
  'tls-closed',
];

/** Reports missing attempts. */
function missingAttempts({ attempts }: Call, arrivals: readonly Arrival[]): string[] {
  const expected = attempts.filter((each) => !UNOBSERVED.includes(each.connection) && !each.mayBeMissing).length;
  return arrivals.length < expected ? [`only ${arrivals.length} of ${expected} attempts arrived`] : [];
}

/** Reports a key used by an earlier call: two leads under one key become one lead, or a conflict. */
function reusedKeys(
  driverRequest: DriverRequest,
  arrivals: readonly Arrival[],
  known: Set<string | undefined>,
): string[] {
  if (driverRequest.call !== 'createLead' || driverRequest.idempotencyKey) return [];
  const key = arrivals.map(({ request }) => request && readIdempotencyKey(request)).find(Boolean);
  const isReused = key !== undefined && known.has(key);
  known.add(key);
  return isReused ? [`has the Idempotency-Key of an earlier call: ${key}`] : [];
}
