import { type Event, type History, when } from './history.ts';

/** Lists the actions and observations of each party, in order: in the studios that the first violation names, or else in all. */
export function formatTrace({ events }: History, violations: readonly string[]): string {
  const [first = ''] = violations;
  const studioIds = new Set(events.flatMap((event) => ('studioId' in event ? [event.studioId] : [])));
  const named = [...studioIds].filter((id) => new RegExp(`\\b${id}\\b(?!-)`).test(first));
  // Includes the registers of these studios, and those that the violation names.
  const isIncluded = (event: Event) =>
    named.length === 0 ||
    ('studioId' in event
      ? named.includes(event.studioId)
      : event.kind !== 'put' || event.what.split(' ').some((word) => named.includes(word) || first.includes(word)));
  return events
    .filter(isIncluded)
    .toSorted((a, b) => a.span.begin - b.span.begin)
    .map((event) => `${when(event.span)} ${event.party}: ${formatEvent(event)}`)
    .join('\n');
}

function formatEvent(event: Event): string {
  switch (event.kind) {
    case 'request': {
      const { operation, studioId, answer, secret } = event;
      const { name } = operation;
      const what =
        name === 'create' ? JSON.stringify(operation.lead) : name === 'get' ? operation.leadId : operation.query;
      const response = answer ? `${answer.status} ${answer.code ?? answer.text}` : 'no response';
      return `${name}s ${what} in ${studioId} with ${secret.slice(0, 12)}… and gets ${response}`;
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
