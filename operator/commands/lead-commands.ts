import { Argument, type Command, Option } from 'commander';
import { printable } from '../../common/printable.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import { eachPage } from '../../src/domain/cursor.ts';
import { LEAD_STAGES, type Lead, type LeadStage } from '../../src/domain/lead.ts';
import { changeLeadStage, updateLead } from '../../src/usecases/change-lead.ts';
import { findLeads, getLead, listLeads } from '../../src/usecases/read-leads.ts';
import { getStudio } from '../../src/usecases/studios.ts';
import { BY_HAND } from '../command.ts';
import { EXPORT_FORMATS } from '../export-format.ts';
import { writeLeads } from '../export-leads.ts';
import { fileOutput, standardOutput } from '../export-output.ts';
import type { IMPORT_FORMATS } from '../import-format.ts';
import { importFile } from '../import-leads.ts';
import { CONTACT_HELP, CORRECTION_HELP, readContact, readCorrection } from '../lead-json.ts';
import { addEraseCommands } from './erasure-commands.ts';
import { AUDITED_MEMBER, columnOption, positiveInteger } from './options.ts';
import { isJson, program, runOnStore } from './program.ts';

const STUDIO = ['--studio <id>', 'studio of the leads'] as const;

export function addLeadCommands(): void {
  const leads = program.command('leads').description('manage leads');
  addShowCommands(leads);
  addTransferCommands(leads);
  addWorkCommands(leads);
  addEraseCommands(leads);
}

function addShowCommands(leads: Command): void {
  leads
    .command('list')
    .description('list the newest leads of a studio')
    .requiredOption(...STUDIO)
    .option('--limit <number>', 'maximum number of leads', positiveInteger, PAGE_SIZE.fallback)
    .action(({ studio: studioId, limit }: { studio: string; limit: number }) =>
      runOnStore(async (deps) => {
        const listed: Lead[] = [];
        const read = (pageToken: string) =>
          listLeads(deps, { studioId, pageSize: limit - listed.length, pageToken, view: 'full' });
        await getStudio(deps, studioId);
        for await (const { leads } of eachPage(read)) if (listed.push(...leads) >= limit) break;
        return isJson() ? listed : listed.map(columnsOf);
      }),
    );
  leads
    .command('get <lead>')
    .description('show a lead')
    .requiredOption(...STUDIO)
    .action((leadId: string, { studio: studioId }: { studio: string }) =>
      runOnStore((deps) => getLead(deps, { studioId, leadId, view: 'full' })),
    );
}

/** For a table: without the note, which would be too wide. */
const columnsOf = ({ id, displayName, contact, stage, createdAt }: Lead) => ({
  id,
  displayName,
  contact,
  stage,
  createdAt,
});

function addTransferCommands(leads: Command): void {
  leads
    .command('export')
    .description('write all leads of a studio, oldest first, or of all studios in turn')
    .option(...STUDIO)
    .addOption(new Option('--format <format>', 'output format').choices(['ndjson', 'csv']).default('ndjson'))
    .option('--output <file>', 'write to a new file that only its owner can read, instead of standard output')
    .addOption(
      new Option('--resume', 'continue the file of --output after its last complete record, if it exists').conflicts(
        'resumeFrom',
      ),
    )
    .option('--resume-from <token>', 'continue after the leads already written; an interrupted export prints the token')
    .addHelpText(
      'after',
      `
Writes each lead that exists at the beginning exactly once, even if leads are
created or changed meanwhile. NDJSON has the JSON form of leadintake.v1.Lead.
In CSV, a text that a spreadsheet would run as a formula gets an apostrophe in
front, and so does such a text behind apostrophes. \`leads import\` removes it.`,
    )
    .action(exportLeadsTo);
  leads
    .command('import <studio> <file>')
    .description('import leads from a file; safe to repeat, because existing leads are skipped')
    .addOption(new Option('--format <format>', 'input format (default: by the file name)').choices(['ndjson', 'csv']))
    .option(
      '--columns <heading=field...>',
      'in CSV: fields of columns with other headings; "heading=" ignores one',
      columnOption,
    )
    .option('--ignore-other-columns', 'in CSV: ignore columns that are no field; they are listed')
    .addHelpText(
      'after',
      `
Reads the output of \`leads export\` and files like it: displayName and email or
phone (in NDJSON: contact), and optionally sourceId, note, stage, createTime and
updateTime. A lead of the studio, erased or not, is recognised by its id. Others
are recognised by their idempotencyKey, a UUID; else by their id; else by all
fields of the line. Refused lines are reported on standard error, and the exit
status is then 1.`,
    )
    .action(importLeadsFrom);
}

interface ImportOptions {
  readonly format?: keyof typeof IMPORT_FORMATS;
  readonly columns?: ReadonlyMap<string, string>;
  readonly ignoreOtherColumns?: boolean;
}

async function importLeadsFrom(
  studioId: string,
  path: string,
  { columns: fields = new Map(), ignoreOtherColumns: ignoresOthers = false, ...options }: ImportOptions,
): Promise<void> {
  const format = options.format ?? (path.toLowerCase().endsWith('.csv') ? 'csv' : 'ndjson');
  if (format !== 'csv' && (fields.size > 0 || ignoresOthers)) {
    program.error('error: --columns and --ignore-other-columns are for CSV: add --format csv if the file is that');
  }
  const onIgnored = (headings: readonly string[]) =>
    console.error(printable(`ignored columns: ${headings.join(', ')}`));
  await runOnStore(async (deps) => {
    const counts = await importFile(deps, { studioId, path, format, fields, ignoresOthers, onIgnored });
    if (counts.refused > 0) process.exitCode = 1;
    return counts;
  });
}

function addWorkCommands(leads: Command): void {
  leads
    .command('stage <studio> <lead>')
    .description('move a lead to a stage; won and lost free its contact for another lead')
    .addArgument(new Argument('<stage>').choices(LEAD_STAGES))
    .option(...AUDITED_MEMBER)
    .action((studioId: string, leadId: string, stage: LeadStage, { member: memberId }: { member?: string }) =>
      runOnStore((deps) => changeLeadStage(deps, { studioId, leadId, stage, memberId, ...BY_HAND })),
    );
  leads
    .command('find <studio>')
    .description('list the leads of a contact, the open one first; at most 100')
    .addHelpText('after', CONTACT_HELP)
    .action((studioId: string) =>
      runOnStore(async (deps) => {
        await getStudio(deps, studioId);
        const contact = await readContact(process.stdin);
        const query = { studioId, contact, pageSize: PAGE_SIZE.max, pageToken: '' };
        const { leads, nextPageToken, mayBeIncomplete } = await findLeads(deps, query);
        if (nextPageToken !== '') console.error(`list truncated: these are ${leads.length} leads of more`);
        if (mayBeIncomplete)
          console.error(
            'leads may be missing: a number was compared without a region, or the contact has too many leads',
          );
        return leads;
      }),
    );
  leads
    .command('update <studio> <lead>')
    .description('correct the name, contact, source or note of a lead; an open lead then holds the new contact')
    .option(...AUDITED_MEMBER)
    .addHelpText('after', CORRECTION_HELP)
    .action((studioId: string, leadId: string, { member: memberId }: { member?: string }) =>
      runOnStore(async (deps) => {
        const fields = await readCorrection(process.stdin);
        return updateLead(deps, { studioId, leadId, fields, memberId, ...BY_HAND });
      }),
    );
}

interface ExportOptions {
  readonly studio?: string;
  readonly format: keyof typeof EXPORT_FORMATS;
  readonly output?: string;
  readonly resume?: boolean;
  readonly resumeFrom?: string;
}

async function exportLeadsTo(options: ExportOptions): Promise<void> {
  const { studio: studioId = '', resumeFrom: resumeToken = '', output: path, resume = false } = options;
  if (resume && path === undefined) program.error('error: --resume needs the file to continue: add --output');
  const format = EXPORT_FORMATS[options.format];
  await runOnStore(async (deps) => {
    // Checked before the file is created.
    if (studioId !== '') await getStudio(deps, studioId);
    const isFile = path !== undefined;
    const output = isFile ? await fileOutput(path, format, resume) : standardOutput();
    await writeLeads(deps, { studioId, resumeToken, format, output, isFile });
  });
}
