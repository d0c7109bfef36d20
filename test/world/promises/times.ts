import type { Span } from '../history.ts';
import type { Life } from '../life.ts';

/** A lead in a response to a website server. */
interface Shown {
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
export function brokenOfTimes({ history }: Life): string[] {
  const shown = history.of('request').flatMap(({ answer, span }): Shown[] => {
    // A replayed creation returns the lead as it was then.
    if (!answer || answer.status > 201 || answer.headers.has('idempotent-replayed')) return [];
    const { lead, leads = [lead] } = JSON.parse(answer.text);
    return leads.map((each: Omit<Shown, 'span'>) => ({ ...each, span }));
  });
  return [...Map.groupBy(shown, ({ id }) => id).values()].flatMap(brokenOfLead);
}

function brokenOfLead(shown: readonly Shown[]): string[] {
  const broken: string[] = [];
  const stages = new Map<string, string>();
  const byEnd = shown.toSorted((a, b) => a.span.end - b.span.end);
  let [over, latest] = [0, ''];
  for (const { span, id, stage, createdAt, updatedAt } of shown.toSorted((a, b) => a.span.begin - b.span.begin)) {
    for (; (byEnd[over]?.span.end ?? span.begin) < span.begin; over += 1) {
      const { updatedAt = '' } = byEnd[over] ?? {};
      if (updatedAt > latest) latest = updatedAt;
    }
    const told = `${id} is shown ${stage}, of ${updatedAt}`;
    if (timeOfId(id) !== createdAt) broken.push(`${id} is of ${timeOfId(id)} by its id, and made at ${createdAt}`);
    if (updatedAt < createdAt) broken.push(`${told}, and made at ${createdAt}`);
    if (updatedAt < latest) broken.push(`${told}, after ${latest}`);
    const same = stages.get(updatedAt) ?? stage;
    stages.set(updatedAt, same);
    if (same !== stage) broken.push(`${told}, and ${same} of the same time`);
  }
  return [...new Set(broken)];
}

/** A UUID of version 7 begins with 48 bits of milliseconds. */
const timeOfId = (id: string): string => new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString();
