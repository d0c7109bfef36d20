import { type EventOf, possibleValues, when } from '../history.ts';
import type { KnownKey, Simulation } from '../simulation.ts';
import { possiblyAhead } from './times.ts';

/** Keys of websites live at least this long; seconds. */
const LIFETIME_S = 86_400;

/** The check that refuses a request before its content is examined; `open`: all checks pass. */
type Gate = 'key' | 'studio' | 'issuer' | 'scope' | 'open';

const GATES: Readonly<Record<string, Gate>> = {
  integration_key_invalid: 'key',
  subscription_suspended: 'studio',
  integration_issuer_forbidden: 'issuer',
  integration_scope_forbidden: 'scope',
};

/** Compares each read of a register with all writes to it. */
export function registerViolations({ history }: Simulation): string[] {
  const puts = Map.groupBy(history.of('put'), ({ what }) => what);
  return history.of('registerRead').flatMap(({ party, what, value, span }) => {
    const possible = possibleValues(puts.get(what) ?? [], span);
    if (possible.has(value)) return [];
    return [`${when(span)}: the ${party} reads "${what}" as ${value}, expected ${[...possible].join(' or ')}`];
  });
}

/**
 * Compares the outcome of each request with the possible states of its key, studio and issuer while it was in flight: a request
 * with an invalid key gets the error of the first check that fails, and a valid one gets none.
 */
export function keyViolations(sim: Simulation): string[] {
  const keys = new Map(sim.studios.flatMap(({ keys }) => keys).map((key) => [key.apiKeyId, key]));
  const puts = Map.groupBy(sim.history.of('put'), ({ what }) => what);
  const aheadIn = possiblyAhead(sim);
  const at = (what: string, { span }: EventOf<'request'>) => possibleValues(puts.get(what) ?? [], span);
  return sim.history.of('request').flatMap((request) => {
    const { answer, secret, studioId, operation } = request;
    // A 503 replaces these responses if the key or its quota cannot be checked. So does a 429 if the gateway has cached the key
    // and its quota is used up. A 408 precedes all checks.
    if (!answer || [408, 429, 503].includes(answer.status)) return [];
    const gate = GATES[answer.code ?? ''] ?? 'open';
    const key = keys.get(sim.keyBySecret.get(secret) ?? '') as KnownKey;
    const possible = new Set<Gate>();
    const states = at(`secret ${secret}`, request);
    if (states.has('invalid')) possible.add('key');
    if (aheadIn(request.span) >= LIFETIME_S) possible.add('key');
    if (states.has('valid')) {
      const status = at(`status of ${studioId}`, request);
      if (status.has('suspended')) possible.add('studio');
      if (status.has('active')) {
        const issuers = [...at(`issuer of ${key.apiKeyId}`, request)];
        const roles = issuers.flatMap((issuer) => [...at(`role of ${issuer} in ${studioId}`, request)]);
        if (roles.some((role) => !['owner', 'admin'].includes(role))) possible.add('issuer');
        const isAllowed = operation.name === 'create' ? key.mayCreate : key.mayRead;
        if (roles.some((role) => ['owner', 'admin'].includes(role))) possible.add(isAllowed ? 'open' : 'scope');
      }
    }
    if (possible.has(gate)) return [];
    const expected = [...possible].join(' or ');
    return [
      `${when(request.span)}: ${operation.name} in ${studioId} with key ${key.apiKeyId} gets ${answer.status} ${answer.code ?? ''} (${gate}), expected ${expected}`,
    ];
  });
}
