import { isDeepStrictEqual } from 'node:util';
import CHECK_FINDINGS from './check-findings.json' with { type: 'json' };
import { readIdempotencyKey } from './check-requests.ts';
import { type Call, type ExpectedError, type ExpectedFindings, PARTS } from './conversation.ts';
import type { DriverRequest, Parts, Report } from './driver-process.ts';
import { type Exchange, findSuccess, readRetryAfter, wholeAnswerTo } from './exchanges.ts';
import shared from './shared.json' with { type: 'json' };

/** The lead fields that a client must report exactly as the service sends them. Any other field is optional. */
const LEAD = Object.keys(shared.answers.created.json.lead);

/** Returns the faults of a report, given the requests that arrived and the responses they received. */
export function faultsOfReport(
  call: Call,
  driverRequest: DriverRequest,
  exchanges: readonly Exchange[],
  report: Report,
): string[] {
  if (call.report === 'refused') return faultsOfRefusal(driverRequest, report);
  if (typeof call.report === 'object' && 'found' in call.report) return faultsOfFindings(call.report, report);
  const outcome = call.report === 'result' ? 'result' : 'error';
  const reported = report[outcome];
  const must =
    call.report === 'result' ? expectedResult(driverRequest, exchanges) : expectedError(call, driverRequest, exchanges);
  if (!reported) return [`the report is ${JSON.stringify(report)}, not ${outcome} ${JSON.stringify(must)}`];
  const names = report.isPartial ? [] : Object.keys(must);
  const { message, ...parts } = reported;
  const faults = [...new Set([...names, ...Object.keys(parts)])].flatMap((name) => {
    const [is, should] = [comparable(name, parts[name], must[name]), comparable(name, must[name], must[name])];
    if (name === 'attempts' && !areCounted(exchanges) && Number(is) >= Number(should)) return [];
    return isDeepStrictEqual(is, should) ? [] : [`the report has ${name} ${show(is)}, not ${show(should)}`];
  });
  return [...faults, ...faultsOfMessage(call.report, message)];
}

/** Returns the faults of the message for people, if the report has one. */
function faultsOfMessage(report: Call['report'], message: unknown): string[] {
  if (typeof report === 'string' || !('because' in report) || message === undefined) return [];
  return String(message).includes(`: ${report.because}`)
    ? []
    : [`the message is ${show(message)}, not because ${report.because}`];
}

function faultsOfRefusal({ apiKey }: DriverRequest, report: Report): string[] {
  if (report.refused === undefined) return [`the report is ${JSON.stringify(report)}, not refused`];
  const secret = apiKey.trim();
  return secret.length > 'lik_'.length && report.refused.includes(secret)
    ? ['the reason of the refusal repeats the key']
    : [];
}

/** Compares findings, and their sentences with the table, in which names in braces stand for numbers. */
function faultsOfFindings({ found, because }: ExpectedFindings, { result }: Report): string[] {
  const findings = Array.isArray(result?.findings) ? (result.findings as readonly Parts[]) : [];
  const table: Readonly<Record<string, readonly string[]>> = CHECK_FINDINGS;
  const faults = PARTS.flatMap((about, index) => {
    const code = found[about] ?? 'not_checked';
    const [verdict = '', text = ''] = table[code] ?? [];
    const sentence = because === undefined ? text : text.replace('{fault}', because);
    const { sentence: said, ...is } = findings[index] ?? {};
    const [before = '', after] = sentence.split(/\{\w+\}/);
    const numbered = String(said).replace(/\d+(?!.*\d)/, '{}');
    const isOther = sentence.includes('{fault}')
      ? !String(said).startsWith(before)
      : numbered !== `${before}{}${after}`;
    const hasSentence = after === undefined ? said === sentence : !isOther;
    const isFound = hasSentence && isDeepStrictEqual(is, { about, verdict, code });
    return isFound ? [] : [`the report has ${show(findings[index])}, not ${about}: ${code}: ${sentence}`];
  });
  const can = {
    canCreate: found['leads.create'] === 'create_granted',
    canRead: found['leads.read'] === 'read_granted',
  };
  const wrong = Object.entries(can).filter(([name, may]) => result?.[name] !== may);
  return [...faults, ...wrong.map(([name]) => `the report has ${name} ${show(result?.[name])}`)];
}

function expectedResult(driverRequest: DriverRequest, exchanges: readonly Exchange[]): Parts {
  const last = exchanges.map(({ arrivals }) => arrivals.at(-1));
  const answers = last.map((arrival) => findSuccess(arrival) as Parts | undefined);
  switch (driverRequest.call) {
    case 'createLead': {
      const replayed = wholeAnswerTo(last.at(-1))?.headers.has('idempotent-replayed');
      return { lead: answers.at(-1)?.lead, replayed, idempotencyKey: sentKey(exchanges) };
    }
    case 'getLead':
      return { lead: answers.at(-1)?.lead };
    case 'listLeads':
      return { leads: answers.at(-1)?.leads, nextCursor: answers.at(-1)?.nextCursor };
    case 'check':
      return {};
    case 'allLeads':
      return { leads: answers.flatMap((page) => page?.leads) };
  }
}

function expectedError({ report }: Call, driverRequest: DriverRequest, exchanges: readonly Exchange[]): Parts {
  const { because: _, ...expected }: Partial<ExpectedError> =
    typeof report === 'string' || 'found' in report ? {} : report;
  const arrivals = exchanges.at(-1)?.arrivals ?? [];
  const answer = wholeAnswerTo(arrivals.at(-1));
  const body = answer?.body as Parts | undefined;
  return {
    ...expected,
    attempts: arrivals.length,
    ...(driverRequest.call === 'createLead' && { idempotencyKey: driverRequest.idempotencyKey ?? sentKey(exchanges) }),
    ...(expected.kind !== 'no-answer' && {
      code: body?.code,
      status: answer?.status,
      requestId: body?.requestId,
      fields: body?.fields,
      retryAfterSeconds: readRetryAfter(answer),
    }),
  };
}

/** Whether every attempt was observed. Refused connections are not, and attempts that the client ends may not be. */
const areCounted = (exchanges: readonly Exchange[]): boolean =>
  exchanges.every(({ arrivals }) => arrivals.length > 0 && arrivals.every(({ doneAtMs }) => doneAtMs !== undefined));

const sentKey = (exchanges: readonly Exchange[]): string | undefined =>
  exchanges
    .flatMap(({ arrivals }) => arrivals.map(({ request }) => request && readIdempotencyKey(request)))
    .find(Boolean);

/**
 * Normalizes a part of a report, so that values equivalent to the response compare equal. Parts of the response that
 * deviate from the documentation are ignored: how a client handles them is unspecified.
 */
function comparable(name: string, value: unknown, answered: unknown): unknown {
  if (name === 'lead') return publicLead(value, answered);
  if (name === 'leads' && Array.isArray(value)) {
    return value.map((lead, index) => publicLead(lead, Array.isArray(answered) ? answered[index] : undefined));
  }
  if (name === 'fields' && !areFields(answered)) return undefined;
  if (name === 'requestId' && typeof answered !== 'string') return undefined;
  if (name === 'fields' && value instanceof Object && Object.keys(value).length === 0) return undefined;
  return value ?? undefined;
}

/** Returns the lead fields that the response contains in their documented form. */
function publicLead(lead: unknown, answered: unknown): unknown {
  if (!(lead instanceof Object)) return lead;
  const documented = LEAD.filter((name) => {
    const value = (answered as Parts | undefined)?.[name];
    return typeof value === 'string' || value === null;
  });
  return documented.map((name) => (lead as Parts)[name] ?? null);
}

/** Whether the value has the documented form of `fields`. */
function areFields(value: unknown): boolean {
  return value instanceof Object && !Array.isArray(value) && Object.values(value).every(Array.isArray);
}

const show = (value: unknown): string => JSON.stringify(value) ?? 'nothing';
