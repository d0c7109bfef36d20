import type { FinalLead } from '../final-state.ts';
import type { EventOf } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { type Acknowledged, acknowledgedIn } from './acknowledged.ts';

/** Compares lists that were read to their end, and the final leads, with all acknowledged leads. */
export function listViolations(sim: Simulation, finalLeads: ReadonlyMap<string, readonly FinalLead[]>): string[] {
  const requests = sim.history.of('request');
  const acknowledged = acknowledgedIn(sim);
  const lost = acknowledged
    .filter(({ studioId, id }) => !finalLeads.get(studioId)?.some((lead) => lead.id === id))
    .map(({ studioId, id }) => `${id} of ${studioId} was acknowledged and does not exist in the end`);
  const walks = Map.groupBy(
    requests.filter(({ operation, answer }) => operation.name === 'list' && answer?.status === 200),
    ({ operation }) => (operation.name === 'list' ? operation.walk : 0),
  );
  return [...new Set(lost), ...[...walks.values()].flatMap((pages) => violationsIn(pages, acknowledged, finalLeads))];
}

function violationsIn(
  pages: readonly EventOf<'request'>[],
  acknowledged: readonly Acknowledged[],
  finalLeads: ReadonlyMap<string, readonly FinalLead[]>,
): string[] {
  const [first] = pages;
  if (!first) return [];
  const { studioId } = first;
  const answers = pages.map(({ answer }) => JSON.parse(answer?.text ?? ''));
  const ids: string[] = answers.flatMap(({ leads }) => leads.map(({ id }: { id: string }) => id));
  const violations: string[] = [];
  const isInOrder = ids.every((id, index) => index === 0 || id < (ids[index - 1] as string));
  if (!isInOrder) violations.push(`a list of ${studioId} is not newest first, each lead once: ${ids.join(', ')}`);
  const known = new Set(finalLeads.get(studioId)?.map(({ id }) => id));
  const unknown = ids.filter((id) => !known.has(id));
  if (unknown.length > 0)
    violations.push(`a list of ${studioId} has leads that do not exist in the end: ${unknown.join(', ')}`);
  if (answers.at(-1).nextCursor !== null) return violations;
  const missing = acknowledged.filter(
    ({ studioId: of, id, end }) => of === studioId && end < first.span.begin && !ids.includes(id),
  );
  if (missing.length > 0)
    violations.push(
      `a list of ${studioId} lacks ${missing.map(({ id }) => id).join(', ')}, acknowledged before it began`,
    );
  return violations;
}
