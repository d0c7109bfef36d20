import { type EventOf, possibleValues, type RestAnswer, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';

/** The longest time of a request while nothing disturbs the service; milliseconds. */
const ANSWERED_WITHIN_MS = 5000;

/** Returns the part of a lead that never changes. */
const constantFields = ({ id, createdAt, sourceId, note }: Record<string, unknown>): string =>
  JSON.stringify({ id, createdAt, sourceId, note });

/** Checks each response against its request, the disturbances at that time, and the other responses. */
export function answerViolations(sim: Simulation): string[] {
  const requests = sim.history.of('request');
  return [...unexcused(sim, requests), ...inconsistent(requests), ...wrongSources(sim, requests)];
}

/** Whether the service refused a request because of its own state: it was unavailable, or read the request too slowly. */
const isNotServed = ({ status }: RestAnswer): boolean => [408, 503].includes(status);

/** Returns a test of whether a request may fail, because something on its path was disturbed. */
function findExcused({ world, history }: Simulation): (request: EventOf<'request'>) => boolean {
  const gateways = new Map(
    world.parts
      .filter(({ name }) => name.startsWith('gateway'))
      .flatMap(({ name }, index) => [
        [world.urls[index], name],
        [world.gatewayUrls[index], name],
      ]),
  );
  const disturbances = history.of('disturbance').filter(({ excuses }) => excuses !== 'none');
  return ({ span, url }) =>
    disturbances.some(
      ({ excuses, excusesFrom, span: { end } }) =>
        excusesFrom < span.end && span.begin < end && (excuses === 'any' || excuses === gateways.get(url)),
    );
}

/** Returns the share of the requests that may fail. */
export function shareExcused(sim: Simulation): number {
  const requests = sim.history.of('request');
  return requests.filter(findExcused(sim)).length / Math.max(requests.length, 1);
}

/** Returns failures of requests whose path was not disturbed. */
function unexcused(sim: Simulation, requests: readonly EventOf<'request'>[]): string[] {
  const isExcused = findExcused(sim);
  return requests.flatMap((request) => {
    const { answer, span, operation, gaveUp } = request;
    if (answer?.code === 'internal_error') return [`${operation.name} gets ${answer.text}`];
    const tookMs = span.end - span.begin;
    if (answer ? !isNotServed(answer) && tookMs <= ANSWERED_WITHIN_MS : gaveUp) return [];
    if (isExcused(request)) return [];
    const response = answer ? `${answer.status} ${answer.code} ${answer.text}` : 'no response';
    return [`${when(span)}: ${operation.name} gets ${response} after ${Math.round(tookMs)} ms without a disturbance`];
  });
}

/** Returns creations with one key whose responses differ in any byte, and leads whose constant fields differ. */
function inconsistent(requests: readonly EventOf<'request'>[]): string[] {
  const violations: string[] = [];
  const [texts, leads] = [new Map<string, string>(), new Map<string, string>()];
  const expectSame = (all: Map<string, string>, name: string, text: string) => {
    const before = all.get(name) ?? text;
    if (before !== text) violations.push(`${name} is ${before}, and then ${text}`);
    all.set(name, before);
  };
  for (const { answer, operation, studioId } of requests) {
    if (!answer || answer.status > 201) continue;
    const { lead, leads: listed = [lead] } = JSON.parse(answer.text);
    for (const each of listed) expectSame(leads, `the lead ${each.id}`, constantFields(each));
    if (operation.name !== 'create') continue;
    const { displayName, note, sourceId = null, idempotencyKey } = operation.lead;
    expectSame(texts, `the answer to ${studioId} ${idempotencyKey}`, answer.text);
    if (lead.displayName !== displayName || lead.note !== note || lead.sourceId !== sourceId)
      violations.push(`${studioId} ${JSON.stringify(operation.lead)} is answered with ${answer.text}`);
  }
  return violations;
}

/** Returns creations whose outcome contradicts a source that was enabled, or disabled, throughout the request. */
function wrongSources(sim: Simulation, requests: readonly EventOf<'request'>[]): string[] {
  const puts = Map.groupBy(sim.history.of('put'), ({ what }) => what);
  return requests.flatMap(({ answer, span, operation, studioId }) => {
    if (operation.name !== 'create') return [];
    const { sourceId, idempotencyKey } = operation.lead;
    const isFirst = answer?.status === 201 && !answer.headers.has('idempotent-replayed');
    if (!isFirst && answer?.code !== 'integration_source_invalid') return [];
    const states = sourceId
      ? possibleValues(puts.get(`source ${sourceId} of ${studioId}`) ?? [], span)
      : new Set(['enabled']);
    // A source of another studio has no state in this one.
    const isOff = states.size === 0 || states.has('disabled') || states.has('gone');
    if (isFirst ? states.has('enabled') : isOff) return [];
    return [`${idempotencyKey} in ${studioId} gets ${answer.status} with a source that is ${[...states].join(' or ')}`];
  });
}
