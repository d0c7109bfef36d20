import { type Event, type History, when } from './history.ts';

/** What each party did and read, in order: of the studios that the broken promises name, or of all when they name none. */
export function traceOf({ events }: History, violations: readonly string[]): string {
  const all = violations.join('\n');
  const studioIds = new Set(events.flatMap((event) => ('studioId' in event ? [event.studioId] : [])));
  const named = [...studioIds].filter((id) => new RegExp(`\\b${id}\\b(?!-)`).test(all));
  const isNamed = (studioId: string) => named.length === 0 || named.includes(studioId);
  const secrets = new Set(
    events.flatMap((event) => (event.kind === 'request' && isNamed(event.studioId) ? [event.secret] : [])),
  );
  const isIncluded = (event: Event) => {
    if ('studioId' in event) return isNamed(event.studioId);
    if (event.kind !== 'put' || named.some((id) => event.what.endsWith(id))) return true;
    const [, register, name = ''] = /^(secret|issuer of) (.+)$/.exec(event.what) ?? [];
    return register === 'secret'
      ? secrets.has(name)
      : named.length === 0 || (register !== undefined && all.includes(name));
  };
  return events
    .filter(isIncluded)
    .toSorted((a, b) => a.span.begin - b.span.begin)
    .map((event) => `${when(event.span)} ${event.party}: ${textOf(event)}`)
    .join('\n');
}

function textOf(event: Event): string {
  switch (event.kind) {
    case 'request': {
      const { operation, studioId, answer, secret } = event;
      const request =
        operation.name === 'create'
          ? `creates ${JSON.stringify(operation.lead)}`
          : operation.name === 'get'
            ? `gets ${operation.leadId}`
            : `lists ${operation.query}, page ${operation.page + 1} of walk ${operation.walk}`;
      const response = answer
        ? `${answer.status} ${answer.code ?? answer.text}`
        : event.gaveUp
          ? 'no response in time'
          : 'no response';
      return `${request} in ${studioId} with ${secret.slice(0, 12)}… and gets ${response}`;
    }
    case 'change':
      return `changes ${event.leadId} of ${event.studioId} to ${event.stage ?? event.contact?.value}: ${Object.keys(event.outcome)}`;
    case 'erased':
      return `erases ${event.leadId} of ${event.studioId}`;
    case 'leadRead':
      return `reads ${event.leadId} of ${event.studioId} ${event.stage} (${event.contact.value})`;
    case 'found':
      return `finds ${event.leadIds.join(', ') || 'nothing'} of ${event.contact.value} in ${event.studioId}`;
    case 'exported':
      return `exports ${event.leads.length} leads of ${event.of || 'all studios'}${event.isWhole ? '' : ', and is interrupted'}`;
    case 'put':
      return `puts ${event.what} to ${event.value}${event.isDone ? '' : ', perhaps'}`;
    case 'registerRead':
      return `reads ${event.value} as the ${event.what}`;
    case 'keyAction':
      return `has ${event.action} ${event.apiKeyId} of ${event.studioId} as ${event.memberId}${event.isDone ? '' : ', perhaps'}`;
    default:
      return event.what;
  }
}
