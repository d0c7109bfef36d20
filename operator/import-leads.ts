import { createReadStream, statSync } from 'node:fs';
import { errorSummary } from '../common/error-summary.ts';
import { printable } from '../common/printable.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { importLeads, type LeadImport, MAX_IMPORTED_LEADS } from '../src/usecases/import-leads.ts';
import { IMPORT_FORMATS } from './import-format.ts';
import { progressBar } from './progress-bar.ts';

/** The maximum number of concurrent calls. */
const MAX_CONCURRENT_CALLS = 4;

export interface ImportCounts {
  /** Written by this import. */
  readonly imported: number;
  /** Written by an earlier import. */
  readonly alreadyThere: number;
  /** Reported on standard error, with their lines. */
  readonly refused: number;
}

/**
 * Imports the leads of a file while it is read. It may be repeated: existing leads are skipped.
 *
 * @throws Refusal STUDIO_NOT_FOUND, StoreUnavailable, the error of reading the file
 */
export async function importFile(
  deps: Dependencies,
  {
    studioId,
    path,
    format,
  }: { readonly studioId: string; readonly path: string; readonly format: keyof typeof IMPORT_FORMATS },
): Promise<ImportCounts> {
  const counts = { imported: 0, alreadyThere: 0, refused: 0 };
  const input = createReadStream(path);
  const { size } = statSync(path);
  const progress = progressBar();
  const refuse = (line: number, reason: string) => {
    counts.refused += 1;
    console.error(`line ${line}: ${printable(reason)}`);
  };
  let batch: { line: number; lead: LeadImport }[] = [];
  let calls: Promise<void>[] = [];
  const send = async (sent: typeof batch) => {
    const results = await importLeads(deps, { studioId, leads: sent.map(({ lead }) => lead) });
    for (const [index, result] of results.entries()) {
      if ('refusal' in result) refuse(sent[index]?.line ?? 0, describeRefusal(result.refusal));
      else counts[result.replayed ? 'alreadyThere' : 'imported'] += 1;
    }
    const leads = counts.imported + counts.alreadyThere + counts.refused;
    progress(input.bytesRead, size, (seconds) => `${leads} leads, ${Math.round(leads / seconds)}/s`);
  };
  for await (const each of IMPORT_FORMATS[format](input, studioId)) {
    if ('fault' in each) refuse(each.line, each.fault);
    else batch.push(each);
    if (batch.length < MAX_IMPORTED_LEADS) continue;
    calls.push(send(batch));
    batch = [];
    if (calls.length < MAX_CONCURRENT_CALLS) continue;
    await Promise.all(calls);
    calls = [];
  }
  if (batch.length > 0) calls.push(send(batch));
  await Promise.all(calls);
  return counts;
}

function describeRefusal(
  refusal: Error & { readonly reason: string; readonly faults: readonly { field: string; message: string }[] },
): string {
  const faults = refusal.faults.map(({ field, message }) => `${field} ${message}`).join(', ');
  return `${refusal.reason}: ${faults || errorSummary(refusal)}`;
}
