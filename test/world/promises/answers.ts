import { type EventOf, possibleValues, type RestAnswer, type Span, when } from '../history.ts';
import type { Life } from '../life.ts';

/** The part of a lead that never changes. */
const steady = ({ stage, updatedAt, ...rest }: Record<string, unknown>): string => JSON.stringify(rest);

/** Checks each response against its request, the disturbances of that time, and the other responses. */
export function brokenOfAnswers(life: Life): string[] {
  const requests = life.history.of('request');
  return [...unexcused(life, requests), ...unequal(requests), ...sources(life, requests)];
}

/** Whether a request was rejected because too many were pending. */
export const isTurnedAway = (answer: RestAnswer | undefined): boolean =>
  answer?.status === 503 && answer.text.includes('nothing was written');

/** Whether the service refused a request because of its own condition: it was unavailable, or read the request too slowly. */
const isNotServed = ({ status }: RestAnswer): boolean => [408, 503].includes(status);

/** Failures outside of all disturbances and overloads. */
function unexcused(life: Life, requests: readonly EventOf<'request'>[]): string[] {
  const disturbances = life.history.of('disturbance').map(({ span }) => span);
  const crowds = life.history.of('crowd').map(({ span }) => span);
  return requests.flatMap(({ answer, span, operation, gaveUp }) => {
    if (answer?.code === 'internal_error') return [`${operation.name} is told ${answer.text}`];
    if (answer ? !isNotServed(answer) : gaveUp) return [];
    const isAmong = (spans: readonly Span[]) => spans.some(({ begin, end }) => begin < span.end && span.begin < end);
    const isExcused = isAmong(disturbances) || (isTurnedAway(answer) && isAmong(crowds));
    const told = answer ? `${answer.status} ${answer.code} ${answer.text}` : 'nothing';
    return isExcused ? [] : [`${when(span)}: ${operation.name} is told ${told}, and nothing was wrong`];
  });
}

/** Creations with one key whose responses differ in any byte, and leads whose constant fields differ. */
function unequal(requests: readonly EventOf<'request'>[]): string[] {
  const broken: string[] = [];
  const texts = new Map<string, string>();
  const leads = new Map<string, string>();
  const see = (lead: Record<string, unknown>) => {
    const before = leads.get(lead.id as string) ?? steady(lead);
    if (before !== steady(lead)) broken.push(`a lead is ${before}, and then ${steady(lead)}`);
    leads.set(lead.id as string, before);
  };
  for (const { answer, operation, studioId } of requests) {
    if (answer?.status === 201 && operation.name === 'create') {
      const name = `${studioId} ${operation.lead.idempotencyKey}`;
      const before = texts.get(name) ?? answer.text;
      if (before !== answer.text) broken.push(`${name} is answered ${before}, and then ${answer.text}`);
      texts.set(name, before);
      const { lead } = JSON.parse(answer.text);
      const { displayName, note, sourceId = null } = operation.lead;
      if (lead.displayName !== displayName || lead.note !== note || lead.sourceId !== sourceId)
        broken.push(`${name} was sent as ${JSON.stringify(operation.lead)}, and is ${answer.text}`);
      see(lead);
    }
    if (answer?.status === 200) {
      const { lead, leads = [lead] } = JSON.parse(answer.text);
      for (const each of leads) see(each);
    }
  }
  return broken;
}

/** Creations whose outcome contradicts a source that was enabled, or disabled, throughout the request. */
function sources(life: Life, requests: readonly EventOf<'request'>[]): string[] {
  const puts = Map.groupBy(life.history.of('put'), ({ what }) => what);
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
    const told = `${operation.lead.idempotencyKey} in ${studioId} is told ${answer.status}`;
    return isPossible ? [] : [`${told}, with a source that is ${[...states].join(' or ')}`];
  });
}
