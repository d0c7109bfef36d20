import { now, possibleValues, type Span, when } from '../history.ts';
import { describeClock } from '../scenarios/clocks.ts';
import type { Simulation } from '../simulation.ts';

/** How far ids may stay ahead of a clock that was set back; milliseconds. */
const MAX_AHEAD_MS = 60_000;

/** A lead in a response to a website server, or to the CRM. */
interface LeadRead {
  readonly span: Span;
  readonly id: string;
  readonly stage: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/**
 * Checks the times of leads, whatever the clocks were set to: `createdAt` is the time in the lead's id, each change has a later
 * time than the one before, and nothing else changes `updatedAt`.
 */
export function timeViolations(sim: Simulation): string[] {
  const { history } = sim;
  const reads = history.of('request').flatMap(({ answer, span }): LeadRead[] => {
    // A replayed creation returns the lead as it was at first.
    if (!answer || answer.status > 201 || answer.headers.has('idempotent-replayed')) return [];
    const { lead, leads = [lead] } = JSON.parse(answer.text);
    return leads.map((each: Omit<LeadRead, 'span'>) => ({ ...each, span }));
  });
  reads.push(...history.of('leadRead').map(({ leadId, ...read }) => ({ ...read, id: leadId })));
  const changes = Map.groupBy(history.of('change'), ({ leadId }) => leadId);
  const aboutLeads = [...Map.groupBy(reads, ({ id }) => id)].flatMap(([id, ofLead]) => {
    const made = changes.get(id)?.filter(({ outcome }) => !('refused' in outcome)).length ?? 0;
    const times = new Set(ofLead.map(({ updatedAt }) => updatedAt));
    const tooMany = times.size > made + 1 ? [`${id} has ${[...times]} as updatedAt after ${made} changes`] : [];
    return [...tooMany, ...findViolations(ofLead)];
  });
  return [...aboutLeads, ...leadsAhead(sim)];
}

/** Returns how far the clocks of some parts may have been ahead while something happened; seconds. */
export function possiblyAhead(sim: Simulation, names: RegExp = /./): (span: Span) => number {
  const puts = sim.world.clocks
    .filter(({ name }) => names.test(name))
    .map(({ name }) => sim.listPuts(describeClock(name)));
  return (span) => Math.max(0, ...puts.flatMap((ofClock) => [...possibleValues(ofClock, span)].map(Number)));
}

/** Returns new leads with a time that is far ahead of the clock of every core. */
function leadsAhead(sim: Simulation): string[] {
  const since = Date.now() - now();
  const aheadIn = possiblyAhead(sim, /^core/);
  return sim.history.of('request').flatMap(({ answer, operation, span }) => {
    if (operation.name !== 'create' || answer?.status !== 201 || answer.headers.has('idempotent-replayed')) return [];
    const { id, createdAt } = JSON.parse(answer.text).lead;
    const isPossible = Date.parse(createdAt) <= since + span.end + 1000 * aheadIn(span) + MAX_AHEAD_MS;
    return isPossible ? [] : [`${id} is created at ${when(span)}, and has the time ${createdAt}`];
  });
}

function findViolations(reads: readonly LeadRead[]): string[] {
  const violations = new Set<string>();
  const stages = new Map<string, string>();
  for (const { span, id, stage, createdAt, updatedAt } of reads) {
    const read = `${id} is read as ${stage}, updated at ${updatedAt}`;
    if (readTime(id) !== createdAt) violations.add(`${id} has the time ${readTime(id)}, and createdAt ${createdAt}`);
    const isLater = (other: LeadRead, time: string) => other.span.end < span.begin && other.updatedAt > time;
    const latest = reads.reduce((time, other) => (isLater(other, time) ? other.updatedAt : time), createdAt);
    if (updatedAt < latest) violations.add(`${read}, after ${latest}`);
    const same = stages.get(updatedAt) ?? stage;
    stages.set(updatedAt, same);
    if (same !== stage) violations.add(`${read}, and as ${same} at the same time`);
  }
  return [...violations];
}

/** Reads the time in a UUID of version 7, which begins with 48 bits of milliseconds. */
const readTime = (id: string): string => new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString();
