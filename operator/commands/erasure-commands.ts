import { open } from 'node:fs/promises';
import type { Command } from 'commander';
import { countClosedLeads, eraseClosedLeads } from '../../src/usecases/erase-closed-leads.ts';
import { eraseContact } from '../../src/usecases/erase-contact.ts';
import { eraseLead } from '../../src/usecases/erase-lead.ts';
import { getStudio } from '../../src/usecases/keep-directory.ts';
import { BY_HAND } from '../by-hand.ts';
import { applyErasures, exportErasures } from '../erasures.ts';
import { standardOutput } from '../export-output.ts';
import { CONTACT_HELP, readContact } from '../lead-json.ts';
import { AUDITED_MEMBER, dateOrTime } from './options.ts';
import { program, progressPrinter, reportUnreadable, runOnStore } from './program.ts';

/** Adds the commands that erase leads to the group `leads`. */
export function addEraseCommands(leads: Command): void {
  leads
    .command('erase')
    .description('erase the personal data of leads permanently; ids, idempotency keys, times and stages remain')
    .argument('[studio]', 'studio of the lead; with --closed-before, the only studio to erase in (default: all)')
    .argument('[lead]', 'lead to erase')
    .option(
      '--closed-before <date>',
      'erase all closed leads unchanged since this date, such as 2025-01-31',
      dateOrTime,
    )
    .option('--yes', 'with --closed-before: erase; without it, only the number of leads is printed')
    .option(...AUDITED_MEMBER)
    .action(eraseLeads);
  leads
    .command('erase-contact <studio>')
    .description('erase all leads of a contact, including closed ones')
    .option(...AUDITED_MEMBER)
    .addHelpText('after', CONTACT_HELP)
    .action((studioId: string, { member: memberId }: { member?: string }) =>
      runOnStore(async (deps) => {
        // A studio that is misspelt has no leads of the contact, and must not look as if they were erased.
        await getStudio(deps, studioId);
        return eraseContact(deps, { studioId, contact: await readContact(process.stdin), memberId, ...BY_HAND });
      }),
    );
}

/** Adds the commands for the journal of erasures. */
export function addErasureCommands(): void {
  const erasures = program
    .command('erasures')
    .description('export the journal of erased leads, and apply it to a restored backup');
  erasures
    .command('export')
    .description('write one line of JSON per erased lead, without personal data')
    .action(() => runOnStore((deps) => exportErasures(deps, standardOutput().write)));
  erasures
    .command('apply')
    .description('erase the leads that a journal names')
    .argument('[file]', 'output of `erasures export` (default: standard input)')
    .action((file: string | undefined) =>
      // Opened first: a reader of lines does not report that a file is missing.
      runOnStore(async (deps) =>
        applyErasures(
          deps,
          file === undefined ? process.stdin : (await open(file)).createReadStream(),
          reportUnreadable,
        ),
      ),
    );
}

interface EraseOptions {
  readonly closedBefore?: Date;
  readonly yes?: boolean;
  readonly member?: string;
}

async function eraseLeads(
  studioId: string | undefined,
  leadId: string | undefined,
  { closedBefore: before, yes = false, member: memberId }: EraseOptions,
): Promise<void> {
  if (before === undefined) {
    if (studioId === undefined || leadId === undefined)
      return program.error('error: no lead given: name a studio and a lead, or add --closed-before');
    return runOnStore((deps) => eraseLead(deps, { studioId, leadId, memberId, ...BY_HAND }));
  }
  if (leadId !== undefined) return program.error('error: a lead cannot be combined with --closed-before: give one');
  // Until then every closed lead is erased, which a mistyped year does not mean.
  if (before > new Date()) return program.error('error: --closed-before is in the future: give a time that has passed');
  await runOnStore(async (deps) => {
    if (studioId !== undefined) await getStudio(deps, studioId);
    const count = await countClosedLeads(deps, { studioId, before });
    if (!yes) return { wouldErase: count };
    console.error(`erasing ${count} leads`);
    const which = { studioId, before, memberId: memberId ?? null, ...BY_HAND };
    const print = progressPrinter();
    const onProgress = (erased: number) => print(`${erased} of ${count} leads erased`);
    return { erased: await eraseClosedLeads(deps, which, onProgress) };
  });
}
