import { printable } from '../common/printable.ts';
import type { LeadChange } from '../src/domain/lead-change.ts';
import type { Studio } from '../src/domain/studio.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { LeadChangePoller } from '../src/usecases/lead-change-poller.ts';
import { everyStudio } from '../src/usecases/list-studios.ts';
import { resendLeads } from '../src/usecases/resend-leads.ts';
import { watchLeadChanges } from '../src/usecases/watch-lead-changes.ts';

/** The maximum number of pending leads to count. */
const MAX_COUNTED = 1_000_000;

/**
 * Writes one line per change, as changes arrive, until the signal is aborted. Acknowledges none.
 *
 * @param write writes the lines
 * @param log prints messages for people
 */
export async function watchChanges(
  { store }: Pick<Dependencies, 'store'>,
  {
    json,
    write,
    log,
    ending,
  }: {
    readonly json: boolean;
    readonly write: (text: string) => Promise<void>;
    readonly log: (text: string) => void;
    readonly ending: AbortSignal;
  },
): Promise<void> {
  const { leads, since } = await store.measureLeadChanges(MAX_COUNTED);
  log(
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
 * Puts all leads of a studio, or of all studios, into the change feed again. May be repeated after an interruption.
 *
 * @param studioId undefined: all studios
 * @param onProgress called with the number of leads so far
 * @returns the number of leads
 */
export async function resendChanges(
  deps: Pick<Dependencies, 'store' | 'clock'>,
  studioId: string | undefined,
  onProgress: (count: number) => void,
): Promise<number> {
  let count = 0;
  for await (const id of studioId === undefined ? idsOf(everyStudio(deps)) : [studioId]) {
    let pageToken = '';
    do {
      const part = await resendLeads(deps, { studioId: id, pageToken });
      count += part.leadCount;
      pageToken = part.nextPageToken;
      if (pageToken !== '') onProgress(count);
    } while (pageToken !== '');
  }
  return count;
}

async function* idsOf(studios: AsyncIterable<Studio>): AsyncGenerator<string> {
  for await (const { id } of studios) yield id;
}
