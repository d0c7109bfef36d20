import { createInterface } from 'node:readline';
import { isUuidAsKept } from '../common/rules/field-rules.ts';
import { COMMAND_LINE } from '../src/domain/audit.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { everyStudio } from '../src/usecases/list-studios.ts';

/** How many leads are looked at, or erased, at a time. */
const LEADS_AT_ONCE = 500;

/** A lead that was erased, as a line of the journal has it: nothing in it is of a person. */
interface Erasure {
  readonly studioId: string;
  readonly leadId: string;
  readonly eraseTime: string;
}

/** A line of a journal that is none. */
export class JournalFault extends Error {}

/** Writes a line of JSON for each lead that was erased, by studio and id. @throws what writing fails with */
export async function exportErasures(
  deps: Pick<Dependencies, 'store'>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  for await (const { id: studioId } of everyStudio(deps)) {
    let after: string | null = null;
    do {
      const { leads, next } = await deps.store.walkErasedLeads(studioId, after, LEADS_AT_ONCE);
      for (const { id: leadId, erasedAt } of leads) {
        const erasure: Erasure = { studioId, leadId, eraseTime: erasedAt.toISOString() };
        await write(`${JSON.stringify(erasure)}\n`);
      }
      after = next;
    } while (after !== null);
  }
}

/**
 * Erases what a journal names, as far as it is there. May be done again.
 *
 * @returns how many of them are erased now, and how many are not there
 * @throws JournalFault at the first line that is no line of a journal; those before it are erased
 */
export async function applyErasures(
  { store, clock }: Pick<Dependencies, 'store' | 'clock'>,
  journal: NodeJS.ReadableStream,
): Promise<{ readonly erased: number; readonly notFound: number }> {
  const counts = { erased: 0, notFound: 0 };
  let part: Erasure[] = [];
  const applyPart = async () => {
    const outcomes = await Promise.all(
      part.map(({ studioId, leadId }) =>
        store.eraseLead({ studioId, leadId, memberId: null, caller: COMMAND_LINE, now: clock() }),
      ),
    );
    for (const { kind } of outcomes) counts[kind === 'erased' ? 'erased' : 'notFound'] += 1;
    part = [];
  };
  let number = 0;
  for await (const line of createInterface({ input: journal })) {
    number += 1;
    const erasure = erasureIn(line);
    if (!erasure) {
      await applyPart();
      throw new JournalFault(`line ${number} is no line of a journal of erasures`);
    }
    part.push(erasure);
    if (part.length === LEADS_AT_ONCE) await applyPart();
  }
  await applyPart();
  return counts;
}

function erasureIn(line: string): Erasure | undefined {
  try {
    const erasure = Object(JSON.parse(line)) as Erasure;
    return typeof erasure.studioId === 'string' && isUuidAsKept(erasure.leadId) ? erasure : undefined;
  } catch {
    return undefined;
  }
}
