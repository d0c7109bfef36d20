import { MAX_ENQUIRIES, MAX_ENQUIRY_BYTES } from '../../../src/domain/enquiry.ts';
import type { FinalEnquiry, FinalLead } from '../final-state.ts';
import { conflictingLeadId, type EventOf, possibleValues, type SentLead, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';

type Creation = EventOf<'request'> & { readonly operation: { readonly name: 'create'; readonly lead: SentLead } };

const isCreation = (request: EventOf<'request'>): request is Creation => request.operation.name === 'create';

/** Returns the idempotency key of the creation that an enquiry stores. */
const toKey = ({ note }: FinalEnquiry): string => note.split(' ', 1).join();

/**
 * Compares stored enquiries with refused creations: each creation whose refusal names a lead is stored with that lead, once for
 * each key, unless the studio may have switched that off. Nothing else is stored.
 */
export function enquiryViolations(sim: Simulation, leads: ReadonlyMap<string, readonly FinalLead[]>): string[] {
  const creations = Map.groupBy(sim.history.of('request').filter(isCreation), ({ studioId }) => studioId);
  return [...leads].flatMap(([studioId, ofStudio]) => {
    const puts = sim.listPuts(`keeping of ${studioId}`);
    /** Whether the setting may have had a value while a request was in flight. It is on at first. */
    const isPossible = (value: 'kept' | 'not kept', { span }: Creation) => {
      const isFirst = !puts.some((put) => put.isDone && put.span.end < span.begin);
      return possibleValues(puts, span).has(value) || (value === 'kept' && isFirst);
    };
    const asked = Map.groupBy(creations.get(studioId) ?? [], ({ operation }) => operation.lead.idempotencyKey);
    const refused = [...asked.values()].flat().filter(({ answer }) => answer?.code === 'integration_lead_already_open');
    return ofStudio.flatMap(({ id, enquiries }) => {
      const keys = enquiries.map(toKey);
      const twice = keys.length > new Set(keys).size ? [`${id} has two enquiries of one key: ${keys.join(', ')}`] : [];
      const foreign = enquiries.filter((enquiry) => {
        const may = asked
          .get(toKey(enquiry))
          ?.filter((creation) => isPossible('kept', creation) && mayBeRefusedFor(id, creation));
        return !may?.some(({ operation }) => isSame(operation.lead, enquiry));
      });
      const mayBeDropped = keys.length >= MAX_ENQUIRIES || JSON.stringify(enquiries).length > MAX_ENQUIRY_BYTES / 2;
      const lost = refused.filter((creation) => {
        if (mayBeDropped || conflictingLeadId(creation.answer) !== id || isPossible('not kept', creation)) return false;
        return !keys.includes(creation.operation.lead.idempotencyKey);
      });
      return [
        ...twice,
        ...foreign.map((each) => `${id} has the enquiry ${JSON.stringify(each)}, but refused no such creation`),
        ...lost.map(({ span, operation }) => `${when(span)}: ${id} lacks ${JSON.stringify(operation.lead)}`),
      ];
    });
  });
}

/** Whether a creation may have been refused because of a lead. */
function mayBeRefusedFor(leadId: string, { answer }: Creation): boolean {
  if (answer === undefined || answer.status >= 500) return true;
  return answer.code === 'integration_lead_already_open' && [undefined, leadId].includes(conflictingLeadId(answer));
}

const isSame = (sent: SentLead, stored: FinalEnquiry): boolean =>
  sent.displayName === stored.displayName && sent.note === stored.note && sent.sourceId === stored.sourceId;
