import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { isCanonicalUuid } from '../../common/rules/field-rules.ts';
import { UnreadableRecord } from '../../src/store/port/faults.ts';
import type { Changing, Reading } from '../../src/usecases/dependencies.ts';
import { countClosedLeads, eraseClosedLeads, eraseContact, eraseLead } from '../../src/usecases/erase-leads.ts';
import { examineStudio } from '../../src/usecases/erase-studio.ts';
import { eachStoredPage } from '../../src/usecases/requests.ts';
import { everyStudio, getStudio } from '../../src/usecases/studios.ts';
import { BY_HAND, CommandFault } from '../command.ts';
import { readLines } from '../lines.ts';
import { CONTACT_HELP, readContact } from '../read-contact.ts';
import { print } from '../standard-output.ts';
import { AUDITED_MEMBER, dateOrTime } from './options.ts';
import { program, progressPrinter, reportUnreadable, runOnStore } from './program.ts';

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
        // Otherwise a misspelt studio, which has no leads, would look as if the contact's leads were erased.
        await getStudio(deps, studioId);
        return eraseContact(deps, { studioId, contact: await readContact(process.stdin), memberId, ...BY_HAND });
      }),
    );
}

export function addErasureCommands(): void {
  const erasures = program
    .command('erasures')
    .description('export the journal of erased leads, and apply it to a restored backup');
  erasures
    .command('export')
    .description('write one line of JSON per erased lead, without personal data')
    .action(() => runOnStore((deps) => exportErasures(deps)));
  erasures
    .command('apply')
    .description('erase the leads that a journal names')
    .argument('[file]', 'output of `erasures export` (default: standard input)')
    .action((file: string | undefined) =>
      runOnStore((deps) => applyErasures(deps, file === undefined ? process.stdin : createReadStream(file))),
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
  // A mistyped year in the future would erase every closed lead.
  if (before > new Date()) return program.error('error: --closed-before is in the future: give a time that has passed');
  await runOnStore(async (deps) => {
    if (studioId !== undefined) await getStudio(deps, studioId);
    const count = await countClosedLeads(deps, { studioId, before });
    if (!yes) return { wouldErase: count };
    console.error(`erasing ${count} leads`);
    const which = { studioId, before, memberId: memberId ?? null, ...BY_HAND };
    const showProgress = progressPrinter();
    const onProgress = (erased: number) => showProgress(`${erased} of ${count} leads erased`);
    return { erased: await eraseClosedLeads(deps, which, onProgress) };
  });
}

const BATCH_SIZE = 500;

/** Exceeds the longest entry of a journal; bytes. */
const MAX_ENTRY_LENGTH = 16 * 1024;

/** A journal line for an erased lead, without personal data. */
interface Erasure {
  readonly studioId: string;
  readonly leadId: string;
  readonly eraseTime: string;
}

/** A journal line for an ended studio, whose leads may all be gone. */
type EndedStudio = { readonly endedStudioId: string };

/** Writes a line of JSON per ended studio and per erased lead, in the order of studios and ids. @throws OutputFault */
async function exportErasures(deps: Reading): Promise<void> {
  for await (const { id: studioId, status } of everyStudio(deps)) {
    if (status === 'ended') await print(`${JSON.stringify({ endedStudioId: studioId } satisfies EndedStudio)}\n`);
    const pages = eachStoredPage((after) => deps.store.walkErasedLeads(studioId, after, BATCH_SIZE));
    for await (const { leads } of pages) {
      for (const { id: leadId, erasedAt } of leads) {
        const erasure: Erasure = { studioId, leadId, eraseTime: erasedAt.toISOString() };
        await print(`${JSON.stringify(erasure)}\n`);
      }
    }
  }
}

/**
 * Erases the leads in a journal, and lists the studios to erase on standard error. May be repeated.
 *
 * @returns how many leads this erased, were erased before, do not exist, or cannot be erased
 * @throws CommandFault at the first invalid line; the leads of the lines before it are erased
 */
async function applyErasures(
  { store, clock }: Changing,
  journal: NodeJS.ReadableStream,
): Promise<Readonly<Record<'erased' | 'alreadyErased' | 'notFound' | 'skipped', number>>> {
  const counts = { erased: 0, alreadyErased: 0, notFound: 0, skipped: 0 };
  const ended = new Set<string>();
  let batch: Erasure[] = [];
  const erase = async ({ studioId, leadId }: Erasure) => {
    try {
      const outcome = await store.eraseLead({ studioId, leadId, memberId: null, ...BY_HAND, now: clock() });
      if (outcome.kind !== 'erased') return 'notFound';
      return outcome.isNew ? 'erased' : 'alreadyErased';
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      reportUnreadable(error);
      return 'skipped';
    }
  };
  const applyBatch = async () => {
    for (const outcome of await Promise.all(batch.map(erase))) counts[outcome] += 1;
    batch = [];
  };
  let number = 0;
  for await (const line of readLines(journal, MAX_ENTRY_LENGTH)) {
    number += 1;
    if (line.trim() === '') continue;
    const erasure = erasureIn(line);
    if (erasure && 'endedStudioId' in erasure) {
      ended.add(erasure.endedStudioId);
      continue;
    }
    if (!erasure) {
      await complete();
      throw new CommandFault(
        `line ${number} is not an entry of a journal of erasures; the lines before it were applied`,
      );
    }
    batch.push(erasure);
    if (batch.length === BATCH_SIZE) await applyBatch();
  }
  await complete();
  return counts;

  /** An ended studio's leads follow its own line, so they are erased only now. */
  async function complete(): Promise<void> {
    await applyBatch();
    for (const studioId of ended) await reportIfBack(studioId);
  }

  async function reportIfBack(studioId: string): Promise<void> {
    const studio = await store.findStudio(studioId);
    if (!studio) return;
    const isErased = studio.status === 'ended' && (await examineStudio({ store }, studioId)).leads === 0;
    if (isErased) return;
    console.error(`the studio ${studioId} was erased, and is back: erase it again, with \`studios erase\``);
    process.exitCode = 1;
  }
}

function erasureIn(line: string): Erasure | EndedStudio | undefined {
  if (line.length > MAX_ENTRY_LENGTH) return undefined;
  try {
    const erasure = Object(JSON.parse(Buffer.from(line, 'latin1').toString())) as Erasure & EndedStudio;
    if (typeof erasure.endedStudioId === 'string') return { endedStudioId: erasure.endedStudioId };
    return typeof erasure.studioId === 'string' && isCanonicalUuid(erasure.leadId) ? erasure : undefined;
  } catch {
    return undefined;
  }
}
