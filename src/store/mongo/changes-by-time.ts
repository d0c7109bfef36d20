import type { Filter } from 'mongodb';
import type { Collections } from './collections.ts';
import { ACKNOWLEDGED, type LeadDocument, WITHOUT_HISTORY } from './documents.ts';

/** The first step by which the ceiling is raised; milliseconds. Each further one is twice as long. */
const FIRST_STEP_MS = 1000;

/** A ceiling this far ahead of the clock leaves nothing out that is likely to be there; milliseconds. */
const AHEAD_MS = 3_600_000;

/**
 * Finds leads by the time of their first unacknowledged change, oldest first. An engine that walks the index in order needs no help.
 * Others sort everything that matches, so that each look would cost as much as all leads that wait: for their sake a look goes up to a
 * ceiling only, which follows what was found. It is no more than a guess of where enough leads are: when there are fewer below it, it is
 * raised, until nothing is left out. So no lead is missed, whatever time stands in it.
 */
export class ChangesByTime {
  #ceiling = ACKNOWLEDGED;
  /** The highest ceiling up to which a look was answered. */
  #answered = new Date(0);

  /** @param leads where to look */
  async find({ leads }: Pick<Collections, 'leads'>, count: number): Promise<LeadDocument[]> {
    for (let step = FIRST_STEP_MS; ; step *= 2) {
      const ceiling = this.#ceiling;
      try {
        const filter = { 'changes.since': { $lt: ceiling } } as Filter<LeadDocument>;
        const found = await leads.find(filter, WITHOUT_HISTORY).sort({ 'changes.since': 1 }).limit(count).toArray();
        this.#answered = ceiling;
        if (found.length === count) this.#lowerTo(found);
        if (found.length === count || ceiling === ACKNOWLEDGED) return found;
      } catch (error) {
        // Perhaps too many match: half as far is tried next.
        const highest = Math.min(ceiling.getTime(), Date.now() + AHEAD_MS);
        this.#ceiling = new Date((Math.min(this.#answered.getTime(), highest) + highest) / 2);
        throw error;
      }
      const raised = ceiling.getTime() + step;
      this.#ceiling = raised > Date.now() + AHEAD_MS ? ACKNOWLEDGED : new Date(raised);
    }
  }

  /** As many again are enough for the next look, and for what was written meanwhile. */
  #lowerTo(found: readonly LeadDocument[]): void {
    const [first = 0, last = 0] = [found[0], found.at(-1)].map((lead) => lead?.changes?.since?.getTime());
    const lowered = last + Math.max(last - first, 1);
    if (lowered < this.#ceiling.getTime()) this.#ceiling = new Date(lowered);
  }
}
