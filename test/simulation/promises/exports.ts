import type { FinalLead } from '../final-state.ts';
import { type EventOf, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { type Acknowledged, acknowledgedIn } from './acknowledged.ts';

/** Compares exports with the leads that were acknowledged before, and with the final leads. */
export function exportViolations(sim: Simulation, finalLeads: ReadonlyMap<string, readonly FinalLead[]>): string[] {
  const acknowledged = acknowledgedIn(sim);
  return sim.history.of('exported').flatMap((event) => violationsIn(event, acknowledged, finalLeads));
}

function violationsIn(
  { of, leads, isWhole, span }: EventOf<'exported'>,
  acknowledged: readonly Acknowledged[],
  finalLeads: ReadonlyMap<string, readonly FinalLead[]>,
): string[] {
  const what = `${when(span)}: an export of ${of || 'all studios'}`;
  const names = leads.map(nameOf);
  const violations: string[] = [];
  const isInOrder = names.every((name, index) => index === 0 || name > (names[index - 1] as string));
  if (!isInOrder) violations.push(`${what} is not in order, each lead once: ${names.join(', ')}`);
  const isUnknown = ({ studioId, id }: (typeof leads)[number]) =>
    finalLeads.has(studioId) && !finalLeads.get(studioId)?.some((lead) => lead.id === id);
  const unknown = leads.filter(isUnknown).map(nameOf);
  if (unknown.length > 0) violations.push(`${what} has leads that do not exist in the end: ${unknown.join(', ')}`);
  if (!isWhole) return violations;
  const sent = new Set(names);
  const isWanted = ({ studioId, end }: Acknowledged) => end < span.begin && (of === '' || of === studioId);
  const missing = acknowledged.filter((lead) => isWanted(lead) && !sent.has(nameOf(lead))).map(nameOf);
  if (missing.length > 0) violations.push(`${what} lacks ${missing.join(', ')}, acknowledged before it began`);
  return violations;
}

/** A sort key: a space sorts before every character of an id. */
const nameOf = ({ studioId, id }: { readonly studioId: string; readonly id: string }): string => `${studioId} ${id}`;
