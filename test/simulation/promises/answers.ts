import { type EventOf, possibleValues, type RestAnswer, type Span, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';

/** The part of a lead that never changes. */
const constantFields = ({ stage, updatedAt, ...rest }: Record<string, unknown>): string => JSON.stringify(rest);

/** Checks each response against its request, the disturbances of that time, and the other responses. */
export function answerViolations(sim: Simulation): string[] {
  const requests = sim.history.of('request');
  return [...unexcused(sim, requests), ...inconsistent(requests), ...sources(sim, requests)];
}

/** Whether a request was rejected because too many were pending. */
export const isRefusedByOverload = (answer: RestAnswer | undefined): boolean =>
  answer?.status === 503 && answer.text.includes('nothing was written');

/** Whether the service refused a request because of its own condition: it was unavailable, or read the request too slowly. */
const isNotServed = ({ status }: RestAnswer): boolean => [408, 503].includes(status);

/** Failures outside of all disturbances and overloads. */
function unexcused(sim: Simulation, requests: readonly EventOf<'request'>[]): string[] {
  const disturbances = sim.history.of('disturbance').map(({ span }) => span);
  const overloads = sim.history.of('overload').map(({ span }) => span);
  return requests.flatMap(({ answer, span, operation, gaveUp }) => {
    if (answer?.code === 'internal_error') return [`${operation.name} gets ${answer.text}`];
    if (answer ? !isNotServed(answer) : gaveUp) return [];
    const isAmong = (spans: readonly Span[]) => spans.some(({ begin, end }) => begin < span.end && span.begin < end);
    const isExcused = isAmong(disturbances) || (isRefusedByOverload(answer) && isAmong(overloads));
    const response = answer ? `${answer.status} ${answer.code} ${answer.text}` : 'no response';
    return isExcused ? [] : [`${when(span)}: ${operation.name} gets ${response} without a disturbance`];
  });
}

/** Creations with one key whose responses differ in any byte, and leads whose constant fields differ. */
function inconsistent(requests: readonly EventOf<'request'>[]): string[] {
  const violations: string[] = [];
  const texts = new Map<string, string>();
  const leads = new Map<string, string>();
  const check = (lead: Record<string, unknown>) => {
    const before = leads.get(lead.id as string) ?? constantFields(lead);
    if (before !== constantFields(lead)) violations.push(`a lead is ${before}, and then ${constantFields(lead)}`);
    leads.set(lead.id as string, before);
  };
  for (const { answer, operation, studioId } of requests) {
    if (answer?.status === 201 && operation.name === 'create') {
      const name = `${studioId} ${operation.lead.idempotencyKey}`;
      const before = texts.get(name) ?? answer.text;
      if (before !== answer.text) violations.push(`${name} is answered with ${before}, and then ${answer.text}`);
      texts.set(name, before);
      const { lead } = JSON.parse(answer.text);
      const { displayName, note, sourceId = null } = operation.lead;
      if (lead.displayName !== displayName || lead.note !== note || lead.sourceId !== sourceId)
        violations.push(`${name} was sent as ${JSON.stringify(operation.lead)}, and is ${answer.text}`);
      check(lead);
    }
    if (answer?.status === 200) {
      const { lead, leads = [lead] } = JSON.parse(answer.text);
      for (const each of leads) check(each);
    }
  }
  return violations;
}

/** Creations whose outcome contradicts a source that was enabled, or disabled, throughout the request. */
function sources(sim: Simulation, requests: readonly EventOf<'request'>[]): string[] {
  const puts = Map.groupBy(sim.history.of('put'), ({ what }) => what);
  return requests.flatMap(({ answer, span, operation, studioId }) => {
    if (operation.name !== 'create') return [];
    const { sourceId } = operation.lead;
    const isFirst = answer?.status === 201 && !answer.headers.has('idempotent-replayed');
    const isRefused = answer?.code === 'integration_source_invalid';
    if (!isFirst && !isRefused) return [];
    const states = sourceId
      ? possibleValues(puts.get(`source ${sourceId} of ${studioId}`) ?? [], span)
      : new Set(['enabled']);
    // A source of another studio has no state in this one.
    const isOff = states.size === 0 || states.has('disabled') || states.has('gone');
    const isPossible = isFirst ? states.has('enabled') : isOff;
    return isPossible
      ? []
      : [
          `${operation.lead.idempotencyKey} in ${studioId} gets ${answer.status} with a source that is ${[...states].join(' or ')}`,
        ];
  });
}
