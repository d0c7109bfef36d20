import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { ownContact } from '../contacts.ts';
import { now } from '../history.ts';
import type { Simulation } from '../simulation.ts';
import { lasting } from './choices.ts';
import { asFarAsDefinite, definiteAnswer, untilDefinite } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import {
  createSeparateLead,
  inShort,
  leadIdIn,
  makeSeparateStudio,
  type SeparateStudio,
  separateLead,
} from './separate-studio.ts';

/** Enough for several calls at a time. */
const LINES = 250;

/** The longest that one run of a command may take; milliseconds. */
const ENDS_WITHIN_MS = 30_000;

/** What an import reports. */
interface Imported {
  readonly imported: number;
  readonly alreadyThere: number;
  readonly erased: number;
  readonly refused: number;
}

/**
 * An operator imports a file into a separate studio, by a command that is killed and repeated, with a lead of the website in
 * its way: each line is one lead, and the open one with the website's contact is refused. Then the website's lead and one of
 * the file are erased, by commands that are killed, too: they are in no answer and no export, and a later import writes the one again
 * whose contact is free, and not the other.
 */
export const transferLeads = aScenario({
  weight: 1,
  choice: fc.record({ killedAfterMs: fc.array(lasting(50, 800), { maxLength: 3 }) }),
  run: (sim, { killedAfterMs }) => asFarAsDefinite(() => transfer(sim, killedAfterMs)),
});

async function transfer(sim: Simulation, killedAfterMs: readonly number[]): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const expect = (result: unknown, expected: unknown, what: string) => {
    if (JSON.stringify(result) !== JSON.stringify(expected))
      sim.history.fail(
        `in ${studio.id}, into which leads are imported, ${what}: ${JSON.stringify(result)}, not ${JSON.stringify(expected)}`,
      );
  };
  const typed = (...words: readonly string[]) => repeated(sim, words, killedAfterMs);
  const emailOf = (line: number) => ownContact(sim.personal, sim.uuid('contact', studio.id, `${line}`));
  const ofWebsite = await createSeparateLead(sim, studio, separateLead(sim, studio.id, 'website', emailOf(0)));
  expect(inShort(ofWebsite), '201', 'the lead of the website is created');

  const folder = mkdtempSync(join(tmpdir(), 'lead-intake-import-'));
  try {
    const file = join(folder, 'leads.ndjson');
    // The second is closed, and has the contact of the first.
    const lineOf = (line: number) => ({
      displayName: `Line ${line} ${sim.personal}`,
      contact: { email: emailOf(line === 1 ? 0 : line).value },
      ...(line === 1 && { stage: 'won' }),
    });
    const lines = Array.from({ length: LINES }, (_, line) => JSON.stringify(lineOf(line)));
    writeFileSync(file, `${lines.join('\n')}\n`);
    const importing = async () => JSON.parse(await typed('leads', 'import', studio.id, file)) as Imported;
    const { imported, alreadyThere, ...others } = await importing();
    expect(
      { written: imported + alreadyThere, ...others },
      { written: LINES - 1, erased: 0, refused: 1 },
      'the import',
    );

    const leads = await exported(studio, typed);
    expect(
      [leads.length, new Set(leads.map(({ displayName }) => displayName)).size],
      [LINES, LINES],
      'exported leads, and their names',
    );

    const ofFile = leads.find(({ displayName }) => displayName.startsWith('Line 2 '))?.id ?? '';
    for (const id of [leadIdIn(ofWebsite), ofFile]) {
      await typed('leads', 'erase', studio.id, id);
      const shown = await definiteAnswer(sim, studio.secret, { name: 'get', leadId: id });
      expect(inShort(shown), '404 integration_lead_not_found', `the erased lead ${id}`);
    }
    expect((await exported(studio, typed)).length, LINES - 2, 'exported leads after the erasure');
    // The contact of the website's lead is free: the line that was refused is written. The erased one is not.
    const again = await importing();
    const result = { there: again.imported + again.alreadyThere, erased: again.erased, refused: again.refused };
    expect(result, { there: LINES - 1, erased: 1, refused: 0 }, 'another import');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns all leads of an export. */
async function exported(
  { id }: SeparateStudio,
  typed: (...words: readonly string[]) => Promise<string>,
): Promise<readonly { readonly id: string; readonly displayName: string }[]> {
  const lines = (await typed('leads', 'export', '--studio', id, '--format', 'ndjson')).trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

/** Repeats a command, whose first runs are killed, until it ends by itself; returns what it prints. */
async function repeated(sim: Simulation, words: readonly string[], killedAfterMs: readonly number[]): Promise<string> {
  const kills = [...killedAfterMs];
  return untilDefinite(sim, `lead-intake ${words.slice(0, 3).join(' ')}`, async () => {
    const begin = now();
    const { status, stdout, stderr } = await sim.world.commandLine.run(
      ['--json', ...words],
      kills.shift() ?? ENDS_WITHIN_MS,
    );
    sim.history.note('operator', `lead-intake ${words.slice(0, 3).join(' ')}: ${status} ${stderr}`, begin);
    if (/^\s+at .*[:/]/m.test(stderr)) sim.history.fail(`lead-intake ${words.join(' ')} crashes: ${stderr}`);
    // An import with a refused line ends with 1, and has printed its result.
    return status === 0 || (status === 1 && stdout !== '') ? stdout : undefined;
  });
}
