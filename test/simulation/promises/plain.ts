import { isDeepStrictEqual } from 'node:util';
import type { FinalLead } from '../final-state.ts';
import { type Event, type EventOf, isOpen } from '../history.ts';

/**
 * Returns what a caller would say of the answers of a studio that no order explains; undefined when two of them and the final
 * leads do not show it.
 */
export function inPlainWords(own: readonly Event[], leads: readonly FinalLead[]): string | undefined {
  const erased = new Set(own.flatMap((event) => (event.kind === 'erased' ? [event.leadId] : [])));
  const created = own.flatMap((event) => createdBy(event) ?? []);
  for (const [index, { id, key, end }] of created.entries()) {
    const other = created.find((each) => each.key === key && each.id !== id);
    if (other) return `a key answered with two leads: ${key} with ${id} and ${other.id}`;
    const isGone = !erased.has(id) && !leads.some((lead) => lead.id === id);
    if (isGone) return `answered 201, and is gone: the lead ${id} of the key ${key}`;
    const missed = own.some((event) => !erased.has(id) && isMissing(event, id) && event.span.begin > end);
    if (missed) return `answered 201, and then 404: the lead ${id} of the key ${key}`;
    if (created.findIndex((each) => each.id === id && each.key !== key) > index)
      return `a lead answered to two keys: ${id}`;
  }
  const open = leads.filter(({ stage }) => isOpen(stage));
  const twin = open.find(
    (lead, index) => open.findIndex((each) => isDeepStrictEqual(each.contact, lead.contact)) < index,
  );
  if (twin) return `two open leads of one contact: ${twin.contact.value}`;
  const unmade = leads.find(({ idempotencyKey }) => !own.some((event) => keyOf(event) === idempotencyKey));
  if (unmade) return `a lead that nobody sent: ${unmade.id}`;
  return leads.flatMap((lead) => lostMove(own, lead) ?? [])[0];
}

const keyOf = (event: Event): string | undefined =>
  event.kind === 'request' && event.operation.name === 'create' ? event.operation.lead.idempotencyKey : undefined;

function createdBy(event: Event): { readonly id: string; readonly key: string; readonly end: number } | undefined {
  const key = keyOf(event);
  const { answer } = event as EventOf<'request'>;
  return key && answer?.status === 201 ? { id: JSON.parse(answer.text).lead.id, key, end: event.span.end } : undefined;
}

const isMissing = (event: Event, id: string): boolean =>
  event.kind === 'request' &&
  event.operation.name === 'get' &&
  event.operation.leadId === id &&
  event.answer?.status === 404;

/** A move that was answered, and that no later one can have replaced. */
function lostMove(own: readonly Event[], { id, stage }: FinalLead): string | undefined {
  const moves = own.filter((event) => event.kind === 'change' && event.leadId === id && event.stage !== undefined);
  const last = moves.find(({ span }) => moves.every((other) => other.span.end <= span.end));
  if (last?.kind !== 'change' || !('answer' in last.outcome) || last.stage === stage) return undefined;
  if (moves.some((other) => other !== last && other.span.end > last.span.begin)) return undefined;
  return `a move was answered, and is lost: ${id} to ${last.stage}, and it is ${stage}`;
}
