import { type ApiRequest, type Attempt, areOfData, attempt, parseRetryAfter } from './attempt.ts';
import type { LeadIntakeClientOptions } from './client.ts';
import {
  faultOfKey,
  isOpenToOthers,
  requireLimits,
  requireServer,
  toAuthorization,
  toLeadsUrl,
} from './configuration.ts';
import { faultOfConnection } from './not-sent.ts';
import { CHECK_FINDINGS, FAILING_FROM_STATUS } from './outcomes.ts';
import { timeoutSignal } from './retry.ts';

/** The code of a finding. */
export type CheckCode = keyof typeof CHECK_FINDINGS;

/** A finding about one part of a configuration. */
export interface CheckFinding {
  readonly about: 'address' | 'key' | 'leads.create' | 'leads.read' | 'clock';
  readonly verdict: 'right' | 'wrong' | 'unknown';
  /** For programs. */
  readonly code: CheckCode;
  /** For people: one sentence, without the key and the address. */
  readonly sentence: string;
}

/** The result of a check. */
export interface CheckReport {
  /** Whether address and key are known to work for creating leads. When false, the findings say why. */
  readonly canCreate: boolean;
  /** Whether address and key are known to work for reading leads. */
  readonly canRead: boolean;
  /** One for each part, in this order: address, key, leads.create, leads.read, clock. */
  readonly findings: readonly CheckFinding[];
}

/** The largest acceptable difference between the clocks; milliseconds. */
const MAX_CLOCK_DIFFERENCE_MS = 5 * 60 * 1000;

/** A code, with the number or the fault that its sentence contains. */
type Found = readonly [code: CheckCode, part?: number | string];

const KEY_PROBLEMS: Readonly<Record<string, CheckCode>> = {
  integration_key_invalid: 'key_refused',
  subscription_suspended: 'studio_suspended',
  integration_issuer_forbidden: 'issuer_forbidden',
};

/**
 * Finds out before the first lead whether the address, the key, its scopes and the clock are right. Sends at most two requests,
 * once each, which count against the quota: a list of one lead, and a creation that cannot write, because it has neither data
 * nor an idempotency key. A malformed address or key becomes a finding, not an error.
 *
 * @param options the same as for `createLeadIntakeClient`
 */
export async function check({
  baseUrl,
  apiKey,
  deadlineMs = 60_000,
  attemptTimeoutMs = 10_000,
  fetch = globalThis.fetch,
  allowHttp = false,
}: LeadIntakeClientOptions): Promise<CheckReport> {
  requireServer();
  requireLimits({ deadlineMs, attemptTimeoutMs });
  const url = orUndefined(() => toLeadsUrl(baseUrl, true));
  const headers = orUndefined(() => toAuthorization(apiKey));
  const isOpen = url !== undefined && !allowHttp && isOpenToOthers(baseUrl);
  if (url === undefined || headers === undefined || isOpen) {
    return makeReport({
      address: [url === undefined ? 'address_malformed' : isOpen ? 'address_not_https' : 'not_checked'],
      key: headers === undefined ? ['key_malformed', faultOfKey(apiKey) ?? ''] : ['not_checked'],
    });
  }
  const once = (request: ApiRequest) => attempt(request, fetch, timeoutSignal(Math.min(deadlineMs, attemptTimeoutMs)));
  const read = await once({ method: 'GET', url: `${url}?limit=1`, headers, expects: 'leads' });
  const clock = clockIn(read);
  const found = foundByReading(read);
  if (found.key[0] !== 'key_right') return makeReport({ ...found, clock });
  const json = new Headers(headers);
  json.set('content-type', 'application/json');
  const created = await once({ method: 'POST', url, headers: json, body: '{}', expects: 'lead' });
  return makeReport({ ...found, ...foundByCreating(created), clock });
}

function foundByReading(read: Attempt): { address: Found; key: Found; 'leads.read'?: Found } {
  if (read.kind === 'answer') return { address: ['address_right'], key: ['key_right'], 'leads.read': ['read_granted'] };
  if (read.kind === 'none') return { address: foundWithoutAnswer(read), key: ['not_checked'] };
  const { code, status } = read.problem;
  if (code === 'route_not_found' || code === 'method_not_allowed')
    return { address: ['wrong_path'], key: ['not_checked'] };
  if (status >= FAILING_FROM_STATUS) return { address: ['unavailable', status], key: ['not_checked'] };
  if (code === 'integration_scope_forbidden') {
    return { address: ['address_right'], key: ['key_right'], 'leads.read': ['read_missing'] };
  }
  return { address: ['address_right'], key: foundInProblem(read) };
}

function foundByCreating(created: Attempt): { key?: Found; 'leads.create'?: Found } {
  if (created.kind === 'none') {
    const { status } = created;
    return { 'leads.create': status === undefined ? foundWithoutAnswer(created) : ['create_stopped', status] };
  }
  if (created.kind === 'answer') return { 'leads.create': ['unexpected', 201] };
  const { code, status, fields = {} } = created.problem;
  // The service checks the data last, so faulty fields prove that all else is right. The key was left out.
  const faulty = Object.keys(fields).filter((field) => field !== 'Idempotency-Key');
  if (code === 'integration_invalid_request' && areOfData(faulty)) return { 'leads.create': ['create_granted'] };
  if (code === 'integration_scope_forbidden') return { 'leads.create': ['create_missing'] };
  if (status >= FAILING_FROM_STATUS) return { 'leads.create': ['unavailable', status] };
  const found = foundInProblem(created);
  return KEY_PROBLEMS[code] ? { key: found, 'leads.create': ['not_checked'] } : { 'leads.create': found };
}

function foundInProblem(attempt: Extract<Attempt, { kind: 'problem' }>): Found {
  const { code, status } = attempt.problem;
  if (code === 'integration_rate_limited') return ['quota_used_up', parseRetryAfter(attempt) ?? 1];
  return [KEY_PROBLEMS[code] ?? 'unexpected', status];
}

function foundWithoutAnswer({ cause, status, headers }: Extract<Attempt, { kind: 'none' }>): Found {
  if (status === undefined) return [faultOfConnection(cause)];
  if (status < 300 || status >= 400) return ['not_of_service', status];
  return [/^https:/i.test(headers?.get('location') ?? '') ? 'redirected_to_https' : 'redirected', status];
}

function clockIn({ kind, headers }: Attempt): Found {
  const date = kind === 'none' ? Number.NaN : Date.parse(headers.get('date') ?? '');
  if (Number.isNaN(date)) return [kind === 'none' ? 'not_checked' : 'clock_unknown'];
  const aheadMs = Date.now() - date;
  if (Math.abs(aheadMs) <= MAX_CLOCK_DIFFERENCE_MS) return ['clock_right'];
  return [aheadMs > 0 ? 'clock_ahead' : 'clock_behind', Math.round(Math.abs(aheadMs) / 60_000)];
}

function makeReport(found: { readonly [about in CheckFinding['about']]?: Found }): CheckReport {
  const parts = ['address', 'key', 'leads.create', 'leads.read', 'clock'] as const;
  const findings = parts.map((about) => {
    const [code, part] = found[about] ?? ['not_checked'];
    const [verdict, sentence] = CHECK_FINDINGS[code];
    return { about, verdict, code, sentence: sentence.replace(/\{\w+\}/, String(part)) };
  });
  const codes = findings.map(({ code }) => code);
  return { canCreate: codes.includes('create_granted'), canRead: codes.includes('read_granted'), findings };
}

function orUndefined<T>(value: () => T): T | undefined {
  try {
    return value();
  } catch {
    return undefined;
  }
}
