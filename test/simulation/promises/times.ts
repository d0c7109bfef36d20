import type { Span } from '../history.ts';
import type { Simulation } from '../simulation.ts';

/** A lead in a response to a website server. */
interface LeadRead {
  readonly span: Span;
  readonly id: string;
  readonly stage: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/**
 * Compares the times of leads, whatever the clocks were set to: `createdAt` is the time in the lead's id, `updatedAt` is
 * never before `createdAt`, and each change has a later time than the previous one.
 */
export function timeViolations({ history }: Simulation): string[] {
  const reads = history.of('request').flatMap(({ answer, span }): LeadRead[] => {
    // A replayed creation returns the lead as it was then.
    if (!answer || answer.status > 201 || answer.headers.has('idempotent-replayed')) return [];
    const { lead, leads = [lead] } = JSON.parse(answer.text);
    return leads.map((each: Omit<LeadRead, 'span'>) => ({ ...each, span }));
  });
  return [...Map.groupBy(reads, ({ id }) => id).values()].flatMap(violationsOf);
}

function violationsOf(reads: readonly LeadRead[]): string[] {
  const violations: string[] = [];
  const stages = new Map<string, string>();
  const byEnd = reads.toSorted((a, b) => a.span.end - b.span.end);
  let [over, latest] = [0, ''];
  for (const { span, id, stage, createdAt, updatedAt } of reads.toSorted((a, b) => a.span.begin - b.span.begin)) {
    for (; (byEnd[over]?.span.end ?? span.begin) < span.begin; over += 1) {
      const { updatedAt = '' } = byEnd[over] ?? {};
      if (updatedAt > latest) latest = updatedAt;
    }
    const read = `${id} is read as ${stage}, updated at ${updatedAt}`;
    if (timeOfId(id) !== createdAt)
      violations.push(`${id} has the time ${timeOfId(id)} in its id, and createdAt ${createdAt}`);
    if (updatedAt < createdAt) violations.push(`${read}, before its creation at ${createdAt}`);
    if (updatedAt < latest) violations.push(`${read}, after ${latest}`);
    const same = stages.get(updatedAt) ?? stage;
    stages.set(updatedAt, same);
    if (same !== stage) violations.push(`${read}, and as ${same} at the same time`);
  }
  return [...new Set(violations)];
}

/** A UUID of version 7 begins with 48 bits of milliseconds. */
const timeOfId = (id: string): string => new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString();
