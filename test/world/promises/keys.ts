import { type EventOf, possibleValues, when } from '../history.ts';
import type { KnownKey, Life } from '../life.ts';

/** What a request is refused by before it is looked at. */
type Gate = 'key' | 'studio' | 'issuer' | 'scope' | 'open';

const GATES: Readonly<Record<string, Gate>> = {
  integration_key_invalid: 'key',
  subscription_suspended: 'studio',
  integration_issuer_forbidden: 'issuer',
  integration_scope_forbidden: 'scope',
};

/**
 * Holds what each request was let in or refused by against what its key, studio and issuer were while it was under way: dead
 * is dead with the answer that says so, and what is good is never refused.
 */
export function brokenOfKeys(life: Life): string[] {
  const keys = new Map(life.studios.flatMap(({ keys }) => keys).map((key) => [key.apiKeyId, key]));
  const puts = Map.groupBy(life.history.of('put'), ({ what }) => what);
  const at = (what: string, { span }: EventOf<'request'>) => possibleValues(puts.get(what) ?? [], span);
  return life.history.of('request').flatMap((request) => {
    const { answer, secret, studioId, operation } = request;
    // Where it is not known how a key stands, or how often it came, 503 takes that answer's place; 408 comes before all.
    if (!answer || answer.status === 503 || answer.status === 408) return [];
    const told = GATES[answer.code ?? ''] ?? 'open';
    const key = keys.get(life.keyBySecret.get(secret) ?? '') as KnownKey;
    const possible = new Set<Gate>();
    const states = at(`secret ${secret}`, request);
    if (states.has('dead')) possible.add('key');
    if (states.has('alive')) {
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
    if (possible.has(told)) return [];
    const expected = [...possible].join(' or ');
    return [
      `${when(request.span)}: ${operation.name} in ${studioId} with key ${key.apiKeyId} is told ${answer.status} ${answer.code ?? ''} (${told}), where it is ${expected}`,
    ];
  });
}
