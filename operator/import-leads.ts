import { createReadStream, statSync } from 'node:fs';
import { errorSummary } from '../common/error-summary.ts';
import { printable } from '../common/printable.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { importLeads, type LeadImport, MAX_IMPORTED_AT_ONCE } from '../src/usecases/import-leads.ts';
import { IMPORT_FORMATS } from './import-format.ts';
import { progressBar } from './progress-bar.ts';

/** How many calls are under way at once. */
const CALLS_AT_ONCE = 4;

/** What became of a file. */
export interface ImportCounts {
  /** Written now. */
  readonly imported: number;
  /** Written by an import before. */
  readonly alreadyThere: number;
  /** Told by their lines. */
  readonly refused: number;
}

/**
 * Imports the leads of a file, as it is read. It may be broken off at any point and done again: what is there is passed over.
 *
 * @throws Refusal STUDIO_NOT_FOUND, StoreUnavailable, and what reading the file fails with
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
  let underWay: Promise<void>[] = [];
  const send = async (sent: typeof batch) => {
    const results = await importLeads(deps, { studioId, leads: sent.map(({ lead }) => lead) });
    for (const [index, result] of results.entries()) {
      if ('refusal' in result) refuse(sent[index]?.line ?? 0, toldOf(result.refusal));
      else counts[result.replayed ? 'alreadyThere' : 'imported'] += 1;
    }
    const leads = counts.imported + counts.alreadyThere + counts.refused;
    progress(input.bytesRead, size, (seconds) => `${leads} leads, ${Math.round(leads / seconds)}/s`);
  };
  for await (const each of IMPORT_FORMATS[format](input, studioId)) {
    if ('fault' in each) refuse(each.line, each.fault);
    else batch.push(each);
    if (batch.length < MAX_IMPORTED_AT_ONCE) continue;
    underWay.push(send(batch));
    batch = [];
    if (underWay.length < CALLS_AT_ONCE) continue;
    await Promise.all(underWay);
    underWay = [];
  }
  if (batch.length > 0) underWay.push(send(batch));
  await Promise.all(underWay);
  return counts;
}

function toldOf(
  refusal: Error & { readonly reason: string; readonly faults: readonly { field: string; message: string }[] },
): string {
  const faults = refusal.faults.map(({ field, message }) => `${field} ${message}`).join(', ');
  return `${refusal.reason}: ${faults || errorSummary(refusal)}`;
}
