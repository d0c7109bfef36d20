import { Throttle } from '../common/throttle.ts';
import { resumeTokenAfter } from '../src/domain/cursor.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { exportLeads } from '../src/usecases/export-leads.ts';
import type { ExportFormat } from './export-format.ts';
import { type ExportOutput, OutputFault } from './export-output.ts';

/** How often the progress is shown; milliseconds. */
const PROGRESS_UPDATE_MS = 500;

/** An export that failed after leads were written; the cause has the reason. */
export class ExportBroken extends Error {
  /** @param option the option that continues the export */
  constructor(count: number, option: string, cause: unknown) {
    super(`${count} leads were written; continue after them with ${option}`, { cause });
    this.name = 'ExportBroken';
  }
}

interface ExportCommand {
  /** Empty: all studios. */
  readonly studioId: string;
  /** Empty: from the beginning, or from the end of the output. */
  readonly resumeToken: string;
  readonly format: ExportFormat;
  readonly output: ExportOutput;
  /** Whether the output is a file, which records its own resume position. */
  readonly isFile: boolean;
}

/**
 * Writes all leads of a studio, or of all studios, page by page. A closed pipe ends the export without an error.
 *
 * @throws Refusal INVALID_REQUEST, STUDIO_NOT_FOUND
 * @throws ExportBroken
 * @throws OutputFault
 */
export async function writeLeads(deps: Dependencies, command: ExportCommand): Promise<void> {
  const { studioId, format, output, isFile } = command;
  const last = output.written?.last;
  const begin = last ? resumeTokenAfter(studioId, last) : command.resumeToken;
  const progress = showProgress(isFile);
  let [count, resumeToken] = [0, begin];
  try {
    if (last && studioId !== '' && last.studioId !== studioId) {
      throw new OutputFault(
        `cannot resume: the file ends with a lead of studio ${last.studioId}; name that studio, or another file`,
      );
    }
    if (!output.written && begin === '') await output.write(format.header);
    for await (const page of exportLeads(deps, { studioId, resumeToken: begin })) {
      if (page.leads.length > 0) await output.write(format.linesOf(page.leads));
      count += page.leads.length;
      resumeToken = page.resumeToken;
      progress.show(count);
    }
    await output.close();
  } catch (error) {
    // The first error is reported.
    await output.close().catch(() => {});
    if (error instanceof OutputFault && error.isClosedPipe) return;
    // How much of a page reached the standard output before it failed is unknown.
    if (count === 0 || (error instanceof OutputFault && !isFile)) throw error;
    throw new ExportBroken(count, isFile ? '--resume' : `--resume-from ${resumeToken}`, error);
  } finally {
    progress.end(count);
  }
}

/** Shows the progress on a terminal, unless the leads themselves go there. */
function showProgress(isFile: boolean) {
  const isShown = process.stderr.isTTY && (isFile || !process.stdout.isTTY);
  const throttle = new Throttle(PROGRESS_UPDATE_MS);
  const startedAt = performance.now();
  const show = (count: number) => {
    const perSecond = Math.round((count / (performance.now() - startedAt)) * 1000);
    process.stderr.write(`\r${count.toLocaleString('en')} leads, ${perSecond.toLocaleString('en')} a second `);
  };
  return {
    show: (count: number) => isShown && throttle.allow() && show(count),
    end(count: number) {
      if (!isShown) return;
      show(count);
      process.stderr.write('\n');
    },
  };
}
