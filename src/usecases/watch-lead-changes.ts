import type { LeadChange } from '../domain/lead-change.ts';
import { keyOfChanged, type LeadChangePoller, type PollResult } from './lead-change-poller.ts';

/** The maximum number of changes in a message. */
const MAX_CHANGES_PER_MESSAGE = 100;

/**
 * Yields changes as they happen, each state of a lead once. It yields no further leads while MAX_LEADS_PER_POLL of them
 * are unacknowledged, so a consumer that acknowledges nothing does not increase memory use.
 *
 * @param ending aborted to end the generator
 */
export async function* watchLeadChanges(
  poller: LeadChangePoller,
  ending: AbortSignal,
): AsyncGenerator<readonly LeadChange[]> {
  let sent: PollResult | undefined;
  for (let poll = await poller.now(); !ending.aborted; poll = await poller.next()) {
    // Most polls find no change. Comparing by identity keeps them free of cost with many watchers.
    if (poll === sent) continue;
    const revisions = sent?.revisions;
    const fresh = poll.changes.filter((change) => revisions?.get(keyOfChanged(change)) !== change.revision);
    // Leads that this poll does not contain were acknowledged.
    sent = poll;
    for (let index = 0; index < fresh.length; index += MAX_CHANGES_PER_MESSAGE) {
      yield fresh.slice(index, index + MAX_CHANGES_PER_MESSAGE);
    }
  }
}
