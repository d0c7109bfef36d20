import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { times } from '../../support/builders.ts';
import { leadsIn } from '../../support/exported.ts';
import { withoutGaps } from '../../support/sqlite-pages.ts';
import { inCall, ownContact } from '../contacts.ts';
import { now } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { databaseFile, isOnSqlite, lasting } from './choices.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome, untilDefinite } from './definite-outcomes.ts';
import { MACHINE } from './faults.ts';
import { command } from './operations.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** Enough lines for several concurrent calls, and for more than one poll of the feed. */
const LINES = 250;
const THOUSANDS = 3000;

const COLUMNS = ['displayName', 'email', 'stage'] as const;

/**
 * Imports a file into a separate studio by a command that is killed and repeated. Each line must become one lead, except the one
 * whose contact has an open lead of the website. Then erases the website's lead, which was corrected, and one of the file, by
 * commands that are killed, too. No answer, export or database file may contain them. A later import writes the refused line,
 * and not the erased one.
 */
const makeTransfer = (lines: number) => ({
  choice: fc.record({ killedAfterMs: fc.array(lasting(50, 800), { maxLength: 3 }) }),
  run: (sim: Simulation, { killedAfterMs }: { readonly killedAfterMs: readonly number[] }) =>
    asFarAsDefinite(() => transfer(sim, lines, killedAfterMs)),
});

export const transferLeads = aScenario({ weight: 2, ...makeTransfer(LINES) });
export const transferThousands = aScenario({ weight: 0, weightOfHours: 2, ...makeTransfer(THOUSANDS) });

async function transfer(sim: Simulation, count: number, killedAfterMs: readonly number[]): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const { id: studioId } = studio;
  const expect = (result: unknown, expected: unknown, what: string) => {
    const [is, should] = [JSON.stringify(result), JSON.stringify(expected)];
    if (is !== should) sim.history.fail(`import into ${studioId}, ${what}: ${is}, not ${should}`);
  };
  const cli = (...words: readonly string[]) => repeat(sim, words, killedAfterMs);
  const makeEmail = (line: number) => ownContact(sim.personal, sim.uuid('contact', studioId, line));
  const sent = separateLead(sim, studioId, 'website', makeEmail(0));
  const websiteAnswer = await createSeparateLead(sim, studio, sent);
  expect(inShort(websiteAnswer), '201', 'the lead of the website is created');
  const corrected = { id: leadIdIn(websiteAnswer), displayName: `Eda ${sim.personal}` };
  await definiteOutcome(sim, 'a lead is corrected', () =>
    sim.crmAt(0).leads.updateLead({ studioId, lead: corrected }, CRM_TIMEOUT),
  );

  const idempotencyKey = sim.uuid('key', studioId, 'call');
  const calledLead = { idempotencyKey, displayName: `Ada ${sim.personal}`, contact: inCall(makeEmail(count)) };
  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-import-'));
  try {
    const file = join(folder, 'leads.csv');
    // The second lead is closed, and has the contact of the first. The last line has one empty cell too many.
    const lines = times(count, (line) => ({
      displayName: `Line ${line} ${sim.personal}`,
      email: makeEmail(line === 1 ? 0 : line).value,
      stage: line === 1 ? 'won' : 'new',
    }));
    const texts = lines.map((line) => COLUMNS.map((name) => line[name]).join());
    writeFileSync(file, `${[COLUMNS.join(), ...texts, 'one,a@b.example,new,'].join('\n')}\n`);
    const importing = async (path = file) => {
      const { imported, alreadyThere, erased, refused } = JSON.parse(await cli('leads', 'import', studioId, path));
      return { there: imported + alreadyThere, erased, refused };
    };
    expect(await importing(), { there: count - 1, erased: 0, refused: 2 }, 'the import');
    const exported = async () => leadsIn(await cli('leads', 'export', studioId));
    const leads = await exported();
    const names = new Set(leads.map(({ displayName }) => displayName));
    expect([leads.length, names.size], [count, count], 'exported leads, and their names');

    const copy = join(folder, 'copy.csv');
    writeFileSync(copy, await cli('leads', 'export', studioId));
    const fileLeadId = leads.find(({ displayName }) => displayName?.startsWith('Line 2 '))?.id ?? '';
    for (const leadId of [corrected.id, fileLeadId]) {
      await cli('leads', 'erase', studioId, leadId);
      sim.history.add({ kind: 'erased', party: 'operator', studioId, leadId, span: { begin: now(), end: now() } });
      const shown = await definiteAnswer(sim, studio.secret, { name: 'get', leadId });
      expect(inShort(shown), '404 integration_lead_not_found', `the erased lead ${leadId}`);
    }
    const isFile = isOnSqlite(sim);
    // In turn, because then a core is running, and its files are not moved away.
    const stored = isFile ? await sim.inTurn(MACHINE, async () => storedBytes(databaseFile(sim))) : '';
    expect(stored.includes(sent.note), false, 'whether the file still has the note of the erased lead');
    expect((await exported()).length, count - 2, 'exported leads after the erasure');
    expect(await importing(copy), { there: count - 2, erased: 2, refused: 0 }, 'the import of an export');
    const call = () => sim.crmAt(0).leads.importLeads({ studioId, leads: [calledLead] }, CRM_TIMEOUT);
    const called = await definiteOutcome(sim, 'a lead is imported by a call', call);
    const results = 'answer' in called ? called.answer.results : [];
    expect(
      results.map(({ outcome }) => outcome.case),
      ['imported'],
      'the import by a call',
    );
    // The contact of the website's lead is free, so the refused line is written. The erased one is not.
    expect(await importing(), { there: count - 1, erased: 1, refused: 1 }, 'another import');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the bytes of a database's log and file, without the fragments that only a vacuum clears. */
const storedBytes = (file: string): string =>
  [readFileSync(`${file}-wal`), withoutGaps(readFileSync(file))].map((bytes) => bytes.toString('latin1')).join('');

/** Repeats a command, whose first runs are killed, until it ends by itself. Returns its output. */
async function repeat(sim: Simulation, words: readonly string[], killedAfterMs: readonly number[]): Promise<string> {
  const kills = [...killedAfterMs];
  return untilDefinite(sim, words.slice(0, 2).join(' '), async () => {
    const { status, stdout } = await command(sim, words, kills.shift());
    // An import with a refused line prints its result, and ends with status 1.
    const isDone = status === 0 || (status === 1 && words[1] === 'import' && stdout !== '');
    return isDone ? stdout : undefined;
  });
}
