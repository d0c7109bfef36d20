import { createInterface } from 'node:readline';
import { isCanonicalUuid } from '../common/rules/field-rules.ts';
import { type ReportUnreadable, UnreadableRecord } from '../src/store/store.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { everyStudio } from '../src/usecases/list-studios.ts';
import { BY_HAND } from './by-hand.ts';
import { CommandFault } from './command-fault.ts';

/** The number of leads that are read, or erased, at a time. */
const BATCH_SIZE = 500;

/** A line of the journal: an erased lead, without personal data. */
interface Erasure {
  readonly studioId: string;
  readonly leadId: string;
  readonly eraseTime: string;
}

/** Writes one line of JSON per erased lead, in the order of studios and ids. @throws the error of `write` */
export async function exportErasures(
  deps: Pick<Dependencies, 'store'>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  for await (const { id: studioId } of everyStudio(deps)) {
    let after: string | null = null;
    do {
      const { leads, next } = await deps.store.walkErasedLeads(studioId, after, BATCH_SIZE);
      for (const { id: leadId, erasedAt } of leads) {
        const erasure: Erasure = { studioId, leadId, eraseTime: erasedAt.toISOString() };
        await write(`${JSON.stringify(erasure)}\n`);
      }
      after = next;
    } while (after !== null);
  }
}

/**
 * Erases the leads that a journal names. May be repeated.
 *
 * @param report called for each lead that cannot be erased, because it cannot be read
 * @returns the number of erased leads, of those that do not exist, and of those that cannot be erased
 * @throws CommandFault at the first invalid line; the leads of the lines before it are erased
 */
export async function applyErasures(
  { store, clock }: Pick<Dependencies, 'store' | 'clock'>,
  journal: NodeJS.ReadableStream,
  report: ReportUnreadable,
): Promise<{ readonly erased: number; readonly notFound: number; readonly skipped: number }> {
  const counts = { erased: 0, notFound: 0, skipped: 0 };
  let batch: Erasure[] = [];
  const applyBatch = async () => {
    const outcomes = await Promise.all(
      batch.map(({ studioId, leadId }) =>
        store
          .eraseLead({ studioId, leadId, memberId: null, ...BY_HAND, now: clock() })
          .then(({ kind }) => (kind === 'erased' ? 'erased' : 'notFound'))
          .catch((error) => {
            if (!(error instanceof UnreadableRecord)) throw error;
            report(error);
            return 'skipped' as const;
          }),
      ),
    );
    for (const outcome of outcomes) counts[outcome] += 1;
    batch = [];
  };
  let number = 0;
  for await (const line of createInterface({ input: journal })) {
    number += 1;
    const erasure = erasureIn(line);
    if (!erasure) {
      await applyBatch();
      throw new CommandFault(
        `line ${number} is not an entry of a journal of erasures; the lines before it were applied`,
      );
    }
    batch.push(erasure);
    if (batch.length === BATCH_SIZE) await applyBatch();
  }
  await applyBatch();
  return counts;
}

function erasureIn(line: string): Erasure | undefined {
  try {
    const erasure = Object(JSON.parse(line)) as Erasure;
    return typeof erasure.studioId === 'string' && isCanonicalUuid(erasure.leadId) ? erasure : undefined;
  } catch {
    return undefined;
  }
}
