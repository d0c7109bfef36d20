import { open } from 'node:fs/promises';
import { errorSummary } from '../common/error-summary.ts';
import { printable } from '../common/printable.ts';
import type { Refusal } from '../src/domain/refusal.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { importLeads, MAX_IMPORTED_LEADS } from '../src/usecases/import-leads.ts';
import { getStudio } from '../src/usecases/studios.ts';
import { BY_HAND } from './command.ts';
import { type ImportLine, type ImportReading, type LeadLine, readCsvLeads } from './csv-import.ts';

const MAX_CONCURRENT_CALLS = 4;

/**
 * Imports leads while it reads their file. It may be repeated: existing leads are skipped.
 *
 * @throws Refusal STUDIO_NOT_FOUND, CommandFault, StoreUnavailable, the error of reading the file
 */
export async function importFile(
  deps: Dependencies,
  { path, ...reading }: ImportReading & { readonly path: string },
  showProgress: (text: string) => void,
) {
  const { studioId } = reading;
  await getStudio(deps, studioId);
  // `erased`: leads that existed before, but are erased.
  const counts = { imported: 0, alreadyThere: 0, erased: 0, refused: 0 };
  const file = await open(path);
  try {
    const input = file.createReadStream({ autoClose: false });
    const refuse = (line: number, reason: string) => {
      counts.refused += 1;
      console.error(`line ${line}: ${printable(reason)}`);
    };
    const batches = collectBatches(readCsvLeads(input, reading), refuse);
    const sendBatches = async () => {
      for await (const batch of batches) {
        const results = await importLeads(deps, { studioId, leads: batch.map(({ lead }) => lead), ...BY_HAND });
        for (const [index, result] of results.entries()) {
          if (result.kind === 'refused') refuse(batch[index]?.line ?? 0, describeRefusal(result.refusal));
          else counts[result.kind === 'already-there' ? 'alreadyThere' : result.kind] += 1;
        }
        const leads = Object.values(counts).reduce((sum, count) => sum + count);
        showProgress(`${leads} leads so far`);
      }
    };
    // After a failure all stop reading the file, and the others finish their current batch.
    const outcomes = await Promise.allSettled(Array.from({ length: MAX_CONCURRENT_CALLS }, sendBatches));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    return counts;
  } finally {
    await file.close();
  }
}

async function* collectBatches(
  lines: AsyncIterable<ImportLine>,
  refuse: (line: number, reason: string) => void,
): AsyncGenerator<readonly LeadLine[]> {
  let batch: LeadLine[] = [];
  for await (const line of lines) {
    if ('fault' in line) refuse(line.line, line.fault);
    else batch.push(line);
    if (batch.length < MAX_IMPORTED_LEADS) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function describeRefusal(refusal: Refusal): string {
  const faults = refusal.faults.map(({ field, message }) => `${field} ${message}`).join(', ');
  return `${refusal.reason}: ${faults || errorSummary(refusal)}`;
}
