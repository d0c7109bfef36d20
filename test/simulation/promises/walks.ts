import type { FinalLead } from '../final-state.ts';
import { type EventOf, when } from '../history.ts';
import type { Simulation } from '../simulation.ts';

type Leads = readonly { readonly studioId: string; readonly id: string; readonly updatedMs?: number }[];

/** A list, an export, or the final leads of a studio, in the order in which they were read. */
interface Walk {
  readonly what: string;
  readonly leads: Leads;
  readonly isNewestFirst: boolean;
  readonly begin: number;
  /** Whether it was read to its end, and so must have every lead that was acknowledged before it began. */
  readonly isWhole: boolean;
  readonly includes: (studioId: string) => boolean;
  /** The time since which its leads have changed, in the order of their changes; null or absent: all leads, by id. */
  readonly sinceMs?: number | null;
}

/** Compares lists, exports and the final leads with the leads that were acknowledged before each began. */
export function walkViolations(sim: Simulation, finalLeads: ReadonlyMap<string, readonly FinalLead[]>): string[] {
  const acknowledged = sim.history
    .of('request')
    .flatMap(({ answer, operation, studioId, span }) =>
      answer?.status === 201 && operation.name === 'create'
        ? [{ studioId, ...(JSON.parse(answer.text).lead as { id: string; createdAt: string }), end: span.end }]
        : [],
    );
  const known = new Set(
    [...finalLeads].flatMap(([studioId, leads]) => leads.map(({ id }) => describeLead({ studioId, id }))),
  );
  return [...lists(sim), ...exported(sim), ...atLast(finalLeads)].flatMap((walk) => {
    const { what, leads, isNewestFirst, begin, isWhole, includes, sinceMs = null } = walk;
    const names = leads.map(describeLead);
    const sorted = [...new Set(names)].sort();
    const violations: string[] = [];
    if (sinceMs !== null) violations.push(...changeViolations(walk));
    else if (`${isNewestFirst ? sorted.toReversed() : sorted}` !== `${names}`)
      violations.push(`${what} is out of order, or has a lead twice: ${names.join(', ')}`);
    const unknown = leads
      .filter((lead) => finalLeads.has(lead.studioId) && !known.has(describeLead(lead)))
      .map(describeLead);
    if (unknown.length > 0) violations.push(`${what} has leads that do not exist in the end: ${unknown.join(', ')}`);
    if (!isWhole) return violations;
    const sent = new Set(names);
    // The creation of a lead is a change, too.
    const isExpected = ({ createdAt }: { createdAt: string }) => sinceMs === null || Date.parse(createdAt) >= sinceMs;
    const missing = acknowledged.filter(
      (lead) => lead.end < begin && includes(lead.studioId) && isExpected(lead) && !sent.has(describeLead(lead)),
    );
    if (missing.length > 0)
      violations.push(`${what} lacks ${missing.map(describeLead).join(', ')}, acknowledged before it began`);
    return violations;
  });
}

/** Checks that an export of changes is sorted by studio and time of change, and has nothing older. */
function changeViolations({ what, leads, sinceMs }: Walk): string[] {
  const inOrder = leads.every((lead, index) => {
    const before = leads[index - 1];
    return before === undefined || describePosition(before) < describePosition(lead);
  });
  const old = leads.filter(({ updatedMs = 0 }) => updatedMs < (sinceMs ?? 0)).map(describeLead);
  return [
    ...(inOrder ? [] : [`${what} is not in the order of changes: ${leads.map(describePosition).join(', ')}`]),
    ...(old.length === 0 ? [] : [`${what} has leads that have not changed since: ${old.join(', ')}`]),
  ];
}

const describePosition = ({ studioId, id, updatedMs }: Leads[number]): string => `${studioId} ${updatedMs} ${id}`;

/** A sort key: a space sorts before every character of an id. */
const describeLead = ({ studioId, id }: Leads[number]): string => `${studioId} ${id}`;

function lists({ history }: Simulation): Walk[] {
  const pages = history
    .of('request')
    .filter(({ operation, answer }) => operation.name === 'list' && answer?.status === 200);
  const walks = Map.groupBy(pages, ({ operation }) => (operation.name === 'list' ? operation.walk : 0));
  return [...walks.values()].map((pages) => {
    const [{ studioId, span }] = pages as [EventOf<'request'>];
    const answers = pages.map(({ answer }) => JSON.parse(answer?.text ?? ''));
    const leads = answers.flatMap(({ leads }) => leads.map(({ id }: { id: string }) => ({ studioId, id })));
    const [what, isWhole] = [`${when(span)}: a list of ${studioId}`, answers.at(-1).nextCursor === null];
    return { what, leads, isNewestFirst: true, begin: span.begin, isWhole, includes: (id) => id === studioId };
  });
}

const exported = ({ history }: Simulation): Walk[] =>
  history.of('exported').map(({ of, leads, isWhole, sinceMs, span }) => {
    const what = `${when(span)}: an export of ${of || 'all studios'}`;
    const includes = (id: string) => of === '' || of === id;
    return { what, leads, isNewestFirst: false, begin: span.begin, isWhole, sinceMs, includes };
  });

const atLast = (finalLeads: ReadonlyMap<string, readonly FinalLead[]>): Walk[] =>
  [...finalLeads].map(([studioId, final]) => {
    const [what, leads] = [`the last list of ${studioId}`, final.map(({ id }) => ({ studioId, id }))];
    const begin = Number.POSITIVE_INFINITY;
    return { what, leads, isNewestFirst: true, begin, isWhole: true, includes: (id) => id === studioId };
  });
