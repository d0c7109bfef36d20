import type { LeadChange } from '../domain/lead-change.ts';
import type { LeadChangeLooks } from './lead-change-looks.ts';

/** How many changes are told at once at most. */
const CHANGES_AT_ONCE = 100;

/**
 * Gives changes as they come, each state of a lead once. As long as as many leads as a look finds are not acknowledged, it gives no
 * others: whoever takes changes and acknowledges none makes nobody hold more of them.
 *
 * @param ending ends it, as does whoever stops taking
 */
export async function* watchLeadChanges(
  looks: LeadChangeLooks,
  ending: AbortSignal,
): AsyncGenerator<readonly LeadChange[]> {
  let told: ReadonlyMap<string, number> = new Map();
  for (let found = await looks.now(); !ending.aborted; found = await looks.next()) {
    const fresh = found.filter((change) => told.get(nameOf(change)) !== change.revision);
    // Those that are not found any more are acknowledged.
    told = new Map(found.map((change) => [nameOf(change), change.revision]));
    for (let index = 0; index < fresh.length; index += CHANGES_AT_ONCE) {
      yield fresh.slice(index, index + CHANGES_AT_ONCE);
    }
  }
}

const nameOf = ({ lead }: LeadChange): string => `${lead.studioId} ${lead.id}`;
