import type { EventOf } from '../history.ts';
import type { FinalLead } from '../last-look.ts';
import type { Life } from '../life.ts';
import { type Acknowledged, acknowledgedIn } from './acknowledged.ts';

/** Compares lists that were read to their end, and the final leads, with all acknowledged leads. */
export function brokenOfLists(life: Life, atLast: ReadonlyMap<string, readonly FinalLead[]>): string[] {
  const requests = life.history.of('request');
  const acknowledged = acknowledgedIn(life);
  const lost = acknowledged
    .filter(({ studioId, id }) => !atLast.get(studioId)?.some((lead) => lead.id === id))
    .map(({ studioId, id }) => `${id} of ${studioId} was acknowledged, and is not there in the end`);
  const walks = Map.groupBy(
    requests.filter(({ operation, answer }) => operation.name === 'list' && answer?.status === 200),
    ({ operation }) => (operation.name === 'list' ? operation.walk : 0),
  );
  return [...new Set(lost), ...[...walks.values()].flatMap((pages) => brokenOfWalk(pages, acknowledged, atLast))];
}

function brokenOfWalk(
  pages: readonly EventOf<'request'>[],
  acknowledged: readonly Acknowledged[],
  atLast: ReadonlyMap<string, readonly FinalLead[]>,
): string[] {
  const [first] = pages;
  if (!first) return [];
  const { studioId } = first;
  const answers = pages.map(({ answer }) => JSON.parse(answer?.text ?? ''));
  const ids: string[] = answers.flatMap(({ leads }) => leads.map(({ id }: { id: string }) => id));
  const broken: string[] = [];
  const isInOrder = ids.every((id, index) => index === 0 || id < (ids[index - 1] as string));
  if (!isInOrder) broken.push(`a list of ${studioId} is not newest first, each lead once: ${ids.join(', ')}`);
  const known = new Set(atLast.get(studioId)?.map(({ id }) => id));
  const strangers = ids.filter((id) => !known.has(id));
  if (strangers.length > 0)
    broken.push(`a list of ${studioId} has what is not there in the end: ${strangers.join(', ')}`);
  if (answers.at(-1).nextCursor !== null) return broken;
  const missing = acknowledged.filter(
    ({ studioId: of, id, end }) => of === studioId && end < first.span.begin && !ids.includes(id),
  );
  if (missing.length > 0)
    broken.push(
      `a list of ${studioId} lacks ${missing.map(({ id }) => id).join(', ')}, acknowledged before it was begun`,
    );
  return broken;
}
