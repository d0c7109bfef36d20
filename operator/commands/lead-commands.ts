import { Argument, type Command } from 'commander';
import { printable, printableJson } from '../../common/printable.ts';
import { PAGE_SIZE } from '../../common/rules/public-api.ts';
import { eachPage } from '../../src/domain/cursor.ts';
import { LEAD_STAGES, type Lead, type LeadStage } from '../../src/domain/lead.ts';
import { changeLeadStage } from '../../src/usecases/change-lead.ts';
import { countLeads, type LeadCount } from '../../src/usecases/count-leads.ts';
import type { Dependencies } from '../../src/usecases/dependencies.ts';
import { exportContact } from '../../src/usecases/export-contact.ts';
import { type ExportLeadsQuery, exportLeads } from '../../src/usecases/export-leads.ts';
import { type LeadEvent, listLeadEvents } from '../../src/usecases/lead-events.ts';
import { findLeads, getLead, listLeads } from '../../src/usecases/read-leads.ts';
import { getStudio } from '../../src/usecases/studios.ts';
import { BY_HAND } from '../command.ts';
import { CSV_HEADER, formatLeads } from '../csv-export.ts';
import { IMPORT_FIELDS } from '../csv-import.ts';
import { importFile } from '../import-leads.ts';
import { CONTACT_HELP, readContact } from '../read-contact.ts';
import { print } from '../standard-output.ts';
import { addEraseCommands } from './erasure-commands.ts';
import {
  AUDITED_MEMBER,
  addFilterOptions,
  columnOption,
  type FilterOptions,
  filterIn,
  positiveInteger,
} from './options.ts';
import { isJson, program, progressPrinter, runOnStore } from './program.ts';

export function addLeadCommands(): void {
  const leads = program.command('leads').description('manage leads');
  addShowCommands(leads);
  addTransferCommands(leads);
  addWorkCommands(leads);
  addEraseCommands(leads);
}

function addShowCommands(leads: Command): void {
  addFilterOptions(
    leads
      .command('list <studio>')
      .description('list the newest leads of a studio; by stage or change, those that changed last'),
  )
    .option('--limit <number>', 'maximum number of leads', positiveInteger, PAGE_SIZE.fallback)
    .action((studioId: string, { limit, ...options }: { limit: number } & FilterOptions) =>
      runOnStore(async (deps) => {
        const listed: Lead[] = [];
        const filter = filterIn(options);
        const read = (pageToken: string) =>
          listLeads(deps, { studioId, pageSize: limit - listed.length, pageToken, view: 'full', filter });
        await getStudio(deps, studioId);
        for await (const { leads } of eachPage(read)) if (listed.push(...leads) >= limit) break;
        return isJson() ? listed : listed.map(toLeadRow);
      }),
    );
  addFilterOptions(
    leads.command('count <studio>').description('count the leads of a studio by stage and source'),
  ).action((studioId: string, options: FilterOptions) =>
    runOnStore(async (deps) => {
      const counts = await countLeads(deps, { studioId, filter: filterIn(options) });
      const toCountRow = ({ of, count, isLowerBound }: LeadCount<string | null>) => ({
        of: of ?? '(no source)',
        leads: isLowerBound ? `at least ${count}` : count,
      });
      return isJson() ? counts : [...counts.byStage, ...counts.bySource].map(toCountRow);
    }),
  );
  leads
    .command('events <studio> <lead>')
    .description('list the moves, corrections and enquiries of a lead, and its erasure')
    .action((studioId: string, leadId: string) =>
      runOnStore(async (deps) => {
        const events = await listLeadEvents(deps, { studioId, leadId });
        const toEventRow = ({ what: { kind, ...details }, ...event }: LeadEvent) => ({ ...event, kind, details });
        return isJson() ? events : events.map(toEventRow);
      }),
    );
  leads
    .command('get <studio> <lead>')
    .description('show a lead')
    .action((studioId: string, leadId: string) =>
      runOnStore((deps) => getLead(deps, { studioId, leadId, view: 'full' })),
    );
}

/** Returns a table row that fits into a terminal. */
const toLeadRow = ({ id, displayName, contact, stage }: Lead) => ({ id, displayName, contact: contact.value, stage });

function addTransferCommands(leads: Command): void {
  addFilterOptions(
    leads
      .command('export [studio]')
      .description('write all leads of a studio as CSV, oldest first, or of all studios in turn')
      .option('--include-test-studios', 'with all studios: include test studios')
      .option('--byte-order-mark', 'begin with the byte order mark, by which Excel recognises UTF-8'),
  )
    .addHelpText(
      'after',
      `
Writes each lead that exists at the beginning exactly once, even if leads are
created or changed meanwhile; with --changed-since, a lead that changes
meanwhile is written again. A text that a spreadsheet would run as a formula
gets an apostrophe in front, even if it already begins with apostrophes.
\`leads import\` removes that apostrophe.`,
    )
    .action((studioId = '', { includeTestStudios: includesTests = false, ...options }: ExportOptions) =>
      runOnStore((deps) =>
        writeLeads(
          deps,
          { studioId, includesTests, filter: filterIn(options), resumeToken: '' },
          options.byteOrderMark,
        ),
      ),
    );
  leads
    .command('export-contact <studio>')
    .description('print everything that is stored about a person, as JSON')
    .addHelpText('after', CONTACT_HELP)
    .action((studioId: string) => runOnStore((deps) => writeContact(deps, studioId)));
  leads
    .command('import <studio> <file>')
    .description('import leads from a file of CSV; safe to repeat, because existing leads are skipped')
    .option(
      '--columns <heading=field...>',
      'fields of columns with other headings; "heading=" ignores one',
      columnOption,
    )
    .option('--ignore-other-columns', 'ignore columns that are no field; they are listed')
    .addHelpText(
      'after',
      `
Reads the output of \`leads export\` and files like it, with the columns
${IMPORT_FIELDS.join(', ')}.
A lead needs a displayName, and an email or a phone. A lead that the studio has,
erased or not, is recognised by its id. Any other is recognised by its
idempotencyKey, a UUID; else by its id; else by all fields of the line. Refused
lines are reported on standard error, and the exit status is then 1.`,
    )
    .action(importLeadsFrom);
}

interface ImportOptions {
  readonly columns?: ReadonlyMap<string, string>;
  readonly ignoreOtherColumns?: boolean;
}

async function importLeadsFrom(
  studioId: string,
  path: string,
  { columns: fields = new Map(), ignoreOtherColumns: ignoresOthers = false }: ImportOptions,
): Promise<void> {
  const onIgnored = (headings: readonly string[]) =>
    console.error(printable(`ignored columns: ${headings.join(', ')}`));
  await runOnStore(async (deps) => {
    const counts = await importFile(deps, { studioId, path, fields, ignoresOthers, onIgnored }, progressPrinter());
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
      runOnStore(async (deps) => (await changeLeadStage(deps, { studioId, leadId, stage, memberId, ...BY_HAND })).lead),
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
        if (nextPageToken !== '') console.error(`list truncated: there are more than these ${leads.length} leads`);
        if (mayBeIncomplete)
          console.error(
            'leads may be missing: a number was compared without a region, or the contact has too many leads',
          );
        return leads;
      }),
    );
}

interface ExportOptions extends FilterOptions {
  readonly includeTestStudios?: boolean;
  readonly byteOrderMark?: boolean;
}

/** Prints everything stored about a person, as JSON. */
async function writeContact(deps: Dependencies, studioId: string): Promise<void> {
  const known = await Array.fromAsync(exportContact(deps, { studioId, contact: await readContact(process.stdin) }));
  const leads = known.filter((each) => 'lead' in each);
  await print(`${printableJson({ leads, ...known.at(-1) })}\n`);
}

/** Writes leads of a studio, or of all studios, page by page. */
async function writeLeads(deps: Dependencies, query: ExportLeadsQuery, hasMark = false): Promise<void> {
  // On a terminal, progress would mix with the rows. Without one, nobody watches it.
  const showProgress = process.stderr.isTTY && !process.stdout.isTTY ? progressPrinter() : () => {};
  let count = 0;
  if (query.studioId !== '') await getStudio(deps, query.studioId);
  await print(`${hasMark ? '\uFEFF' : ''}${CSV_HEADER}`);
  for await (const { leads } of exportLeads(deps, query)) {
    if (leads.length > 0) await print(formatLeads(leads));
    count += leads.length;
    showProgress(`${count} leads so far`);
  }
}
