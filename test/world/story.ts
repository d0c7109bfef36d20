import { type Event, type History, when } from './history.ts';

/** What each party did and saw, in order: of the studios that the broken promises name, or of all when they name none. */
export function storyOf({ events }: History, broken: readonly string[]): string {
  const all = broken.join('\n');
  const studioIds = new Set(events.flatMap((event) => ('studioId' in event ? [event.studioId] : [])));
  const named = [...studioIds].filter((id) => new RegExp(`\\b${id}\\b(?!-)`).test(all));
  const isNamed = (studioId: string) => named.length === 0 || named.includes(studioId);
  const secrets = new Set(
    events.flatMap((event) => (event.kind === 'request' && isNamed(event.studioId) ? [event.secret] : [])),
  );
  const isTold = (event: Event) => {
    if ('studioId' in event) return isNamed(event.studioId);
    if (event.kind !== 'put' || named.some((id) => event.what.endsWith(id))) return true;
    const [, register, name = ''] = /^(secret|issuer of) (.+)$/.exec(event.what) ?? [];
    return register === 'secret'
      ? secrets.has(name)
      : named.length === 0 || (register !== undefined && all.includes(name));
  };
  return events
    .filter(isTold)
    .toSorted((a, b) => a.span.begin - b.span.begin)
    .map((event) => `${when(event.span)} ${event.party}: ${told(event)}`)
    .join('\n');
}

function told(event: Event): string {
  switch (event.kind) {
    case 'request': {
      const { operation, studioId, answer, secret } = event;
      const asked =
        operation.name === 'create'
          ? `creates ${JSON.stringify(operation.lead)}`
          : operation.name === 'get'
            ? `gets ${operation.leadId}`
            : `lists ${operation.query}, page ${operation.page + 1} of walk ${operation.walk}`;
      const told = answer
        ? `${answer.status} ${answer.code ?? answer.text}`
        : event.gaveUp
          ? 'nothing in time'
          : 'nothing';
      return `${asked} in ${studioId} with ${secret.slice(0, 12)}… and is told ${told}`;
    }
    case 'move':
      return `moves ${event.leadId} of ${event.studioId} to ${event.stage} and is told ${JSON.stringify(event.outcome)}`;
    case 'seen':
      return `sees ${event.leadId} of ${event.studioId} ${event.stage}`;
    case 'exported':
      return `exports ${event.leads.length} leads of ${event.of || 'all studios'}${event.isWhole ? '' : ', and is broken off'}`;
    case 'put':
      return `puts ${event.what} to ${event.value}${event.isDone ? '' : ', perhaps'}`;
    case 'shown':
      return `is shown ${event.value} as the ${event.what}`;
    case 'keyDeed':
      return `has ${event.deed} ${event.apiKeyId} of ${event.studioId} as ${event.memberId}${event.isDone ? '' : ', perhaps'}`;
    case 'odd':
      return `meets ${event.oddness} that cannot be read in ${event.studioId}; ${event.asked}: ${event.told}`;
    default:
      return event.what;
  }
}
