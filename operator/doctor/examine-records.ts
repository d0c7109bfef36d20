import { errorSummary } from '../../common/error-summary.ts';
import { readDatabase } from '../../src/store/open-store.ts';
import type { ReportUnreadable, UnreadableRecord } from '../../src/store/port/faults.ts';
import { everyRecord } from '../../src/usecases/every-record.ts';
import type { Notes } from './finding.ts';

const MAX_NAMED = 10;

const REMEDY = 'Correct them (docs/how-to/runbook.md), or restore a backup (docs/how-to/backup.md)';

/**
 * Reads every record of a database without changing it, and notes unreadable ones by their ids.
 *
 * @param onProgress gets the progress as a text
 */
export async function examineRecords(
  notes: Notes,
  databaseUrl: string,
  onProgress: (text: string) => void,
): Promise<void> {
  // Sets, because two pages of a list may report the same record.
  const unreadable = new Map<UnreadableRecord['kind'], Set<string>>();
  const report: ReportUnreadable = ({ kind, studioId, id }) => {
    const name = kind === 'studio' || kind === 'consumer' ? id : `${studioId}/${id}`;
    unreadable.set(kind, (unreadable.get(kind) ?? new Set()).add(name));
  };
  let count = 0;
  try {
    await readDatabase(databaseUrl, report, async (store) => {
      for await (const more of everyRecord(store)) {
        count += more;
        onProgress(`${count} records read`);
      }
    });
  } catch (error) {
    notes.fault(`cannot be read: ${errorSummary(error)}`);
  }
  for (const [kind, names] of unreadable) notes.fault(unreadableText(kind, [...names]));
  if (notes.findings.length === 0) notes.ok(`all ${count} can be read`);
}

function unreadableText(kind: UnreadableRecord['kind'], names: readonly string[]): string {
  // Events have no id, so they are named by their subjects.
  const what = kind === 'event' ? 'subjects of events' : `${kind}s`;
  const listed = names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED), '…'] : names;
  return `include ${names.length} ${what} that cannot be read: ${listed.join(', ')}. ${REMEDY}`;
}
