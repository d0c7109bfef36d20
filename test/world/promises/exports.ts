import { type EventOf, when } from '../history.ts';
import type { FinalLead } from '../last-look.ts';
import type { Life } from '../life.ts';
import { type Acknowledged, acknowledgedIn } from './acknowledged.ts';

/** Compares exports with the leads that were acknowledged before, and with the final leads. */
export function brokenOfExports(life: Life, atLast: ReadonlyMap<string, readonly FinalLead[]>): string[] {
  const acknowledged = acknowledgedIn(life);
  return life.history.of('exported').flatMap((event) => brokenOfExport(event, acknowledged, atLast));
}

function brokenOfExport(
  { of, leads, isWhole, span }: EventOf<'exported'>,
  acknowledged: readonly Acknowledged[],
  atLast: ReadonlyMap<string, readonly FinalLead[]>,
): string[] {
  const what = `${when(span)}: an export of ${of || 'all studios'}`;
  const names = leads.map(nameOf);
  const broken: string[] = [];
  const isInOrder = names.every((name, index) => index === 0 || name > (names[index - 1] as string));
  if (!isInOrder) broken.push(`${what} is not in order, each lead once: ${names.join(', ')}`);
  const isStranger = ({ studioId, id }: (typeof leads)[number]) =>
    atLast.has(studioId) && !atLast.get(studioId)?.some((lead) => lead.id === id);
  const strangers = leads.filter(isStranger).map(nameOf);
  if (strangers.length > 0) broken.push(`${what} has what is not there in the end: ${strangers.join(', ')}`);
  if (!isWhole) return broken;
  const sent = new Set(names);
  const isWanted = ({ studioId, end }: Acknowledged) => end < span.begin && (of === '' || of === studioId);
  const missing = acknowledged.filter((lead) => isWanted(lead) && !sent.has(nameOf(lead))).map(nameOf);
  if (missing.length > 0) broken.push(`${what} lacks ${missing.join(', ')}, acknowledged before it was begun`);
  return broken;
}

/** A sort key: a space sorts before every character of an id. */
const nameOf = ({ studioId, id }: { readonly studioId: string; readonly id: string }): string => `${studioId} ${id}`;
