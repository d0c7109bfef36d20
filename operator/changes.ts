import { printable } from '../common/printable.ts';
import type { LeadChange } from '../src/domain/lead-change.ts';
import type { Studio } from '../src/domain/studio.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { LeadChangePoller } from '../src/usecases/lead-change-poller.ts';
import { everyStudio } from '../src/usecases/list-studios.ts';
import { resendLeads } from '../src/usecases/resend-leads.ts';
import { watchLeadChanges } from '../src/usecases/watch-lead-changes.ts';

/** Up to how many waiting leads are counted. */
const MAX_COUNTED = 1_000_000;

/**
 * Shows changes of leads as they come, a line each, until the signal. It acknowledges none: consumers get all of them.
 *
 * @param write gets the lines
 * @param tell gets what is said to people beside that
 */
export async function watchChanges(
  { store }: Pick<Dependencies, 'store'>,
  {
    json,
    write,
    tell,
    ending,
  }: {
    readonly json: boolean;
    readonly write: (text: string) => Promise<void>;
    readonly tell: (text: string) => void;
    readonly ending: AbortSignal;
  },
): Promise<void> {
  const { leads, since } = await store.measureLeadChanges(MAX_COUNTED);
  tell(
    since
      ? `${leads} ${leads === 1 ? 'lead waits' : 'leads wait'}, the first since ${since.toISOString()}`
      : 'no lead waits',
  );
  for await (const changes of watchLeadChanges(new LeadChangePoller(store), ending)) {
    for (const change of changes) await write(`${printable(json ? JSON.stringify(change) : lineOf(change))}\n`);
  }
}

function lineOf({ lead, revision, since, kinds }: LeadChange): string {
  const changes = kinds.map(({ kind }) => kind).join(', ');
  return `${since.toISOString()}  ${lead.studioId}  ${lead.id}  revision ${revision}  ${lead.stage}  ${changes}`;
}

/**
 * Has all leads of a studio sent once more, or of all studios. Broken off, it may be done again.
 *
 * @param studioId undefined: of all
 * @param tell is told how many are marked so far
 * @returns how many there were
 */
export async function resendChanges(
  deps: Pick<Dependencies, 'store' | 'clock'>,
  studioId: string | undefined,
  tell: (count: number) => void,
): Promise<number> {
  let count = 0;
  for await (const id of studioId === undefined ? idsOf(everyStudio(deps)) : [studioId]) {
    let pageToken = '';
    do {
      const part = await resendLeads(deps, { studioId: id, pageToken });
      count += part.leadCount;
      pageToken = part.nextPageToken;
      if (pageToken !== '') tell(count);
    } while (pageToken !== '');
  }
  return count;
}

async function* idsOf(studios: AsyncIterable<Studio>): AsyncGenerator<string> {
  for await (const { id } of studios) yield id;
}
