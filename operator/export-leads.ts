import { Throttle } from '../common/throttle.ts';
import { resumeTokenAfter } from '../src/domain/resume-token.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { exportLeads } from '../src/usecases/export-leads.ts';
import type { ExportFormat } from './export-format.ts';
import { type ExportOutput, OutputFault } from './export-output.ts';

/** How often a terminal is told how far an export is; milliseconds. */
const SHOWN_EVERY_MS = 500;

/** An export that broke off after some of it was written; the cause says why. */
export class ExportBroken extends Error {
  /** @param howToGoOn what leads on behind it */
  constructor(count: number, howToGoOn: string, cause: unknown) {
    super(`${count} leads were written before; ${howToGoOn} goes on behind them`, { cause });
    this.name = 'ExportBroken';
  }
}

/** What is exported, how and where to. */
export interface ExportCommand {
  /** Empty: the leads of all studios. */
  readonly studioId: string;
  /** Empty: from the beginning, or where the output ends. */
  readonly resumeToken: string;
  readonly format: ExportFormat;
  readonly output: ExportOutput;
  /** Whether the output goes on by itself where it ends. */
  readonly isFile: boolean;
}

/**
 * Writes all leads of a studio, or of all studios, line by line. Whoever closes the pipe that it goes to has enough of it.
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
      throw new OutputFault(`the file ends with a lead of the studio ${last.studioId}`);
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
    // What went wrong first is told.
    await output.close().catch(() => {});
    if (error instanceof OutputFault && error.isClosedPipe) return;
    // Of a page that could not be written whole, nobody knows how much was.
    if (count === 0 || (error instanceof OutputFault && !isFile)) throw error;
    throw new ExportBroken(count, isFile ? '--resume' : `--resume-from ${resumeToken}`, error);
  } finally {
    progress.end(count);
  }
}

/** Tells a terminal how far an export is, unless the leads themselves go there. */
function showProgress(isFile: boolean) {
  const isShown = process.stderr.isTTY && (isFile || !process.stdout.isTTY);
  const seldom = new Throttle(SHOWN_EVERY_MS);
  const began = performance.now();
  const show = (count: number) => {
    const perSecond = Math.round((count / (performance.now() - began)) * 1000);
    process.stderr.write(`\r${count.toLocaleString('en')} leads, ${perSecond.toLocaleString('en')} a second `);
  };
  return {
    show: (count: number) => isShown && seldom.isDue() && show(count),
    end(count: number) {
      if (!isShown) return;
      show(count);
      process.stderr.write('\n');
    },
  };
}
