import type { LeadChange } from '../domain/lead-change.ts';
import { type LeadChangePoller, nameOfChanged, type PollResult } from './lead-change-poller.ts';

/** How many changes are told at once at most. */
const CHANGES_AT_ONCE = 100;

/**
 * Gives changes as they come, each state of a lead once. As long as as many leads as a look finds are not acknowledged, it gives no
 * others: whoever takes changes and acknowledges none makes nobody hold more of them.
 *
 * @param ending ends it, as does whoever stops taking
 */
export async function* watchLeadChanges(
  looks: LeadChangePoller,
  ending: AbortSignal,
): AsyncGenerator<readonly LeadChange[]> {
  let told: PollResult | undefined;
  for (let look = await looks.now(); !ending.aborted; look = await looks.next()) {
    // With many who watch, that most looks find nothing else must cost each of them nothing.
    if (look === told) continue;
    const revisions = told?.revisions;
    const fresh = look.changes.filter((change) => revisions?.get(nameOfChanged(change)) !== change.revision);
    // Those that are not found any more are acknowledged.
    told = look;
    for (let index = 0; index < fresh.length; index += CHANGES_AT_ONCE) {
      yield fresh.slice(index, index + CHANGES_AT_ONCE);
    }
  }
}
