import type { Filter } from 'mongodb';
import type { Collections } from './collections.ts';
import { ACKNOWLEDGED, type LeadDocument, WITHOUT_HISTORY } from './documents.ts';

/** The first step by which the ceiling is raised; each further one is twice as long; milliseconds. */
const FIRST_STEP_MS = 1000;

/** No change is likely to be further ahead of the clock than this; milliseconds. */
const AHEAD_MS = 3_600_000;

/** The position of a lead among those with unacknowledged changes. */
export interface ChangePosition {
  readonly since: Date;
  readonly _id: LeadDocument['_id'];
}

/**
 * Finds leads by the time of their first unacknowledged change, oldest first. Some engines do not read the index in
 * order but sort all matches, so that each query would cost as much as all marked leads. Therefore a query is limited
 * to times below a ceiling, which follows the leads that were found. The ceiling is only an estimate: when it leaves
 * too few leads, it is raised, eventually beyond every time. So no lead is missed, whatever its time.
 */
export class ChangesByTime {
  #ceiling = ACKNOWLEDGED;
  /** The ceiling of the last successful query. */
  #lastSuccess = new Date(0);

  /** Finds the first leads; those with one time are in any order. */
  first({ leads }: Pick<Collections, 'leads'>, count: number): Promise<LeadDocument[]> {
    return this.#find(count, (ceiling) => {
      const filter = { 'changes.since': { $lt: ceiling } } as Filter<LeadDocument>;
      return leads.find(filter, WITHOUT_HISTORY).sort({ 'changes.since': 1 }).limit(count).toArray();
    });
  }

  /**
   * Finds the first leads behind a position, by time and id; null: from the start. Sorting by id as well may cost a sort
   * even on engines that read the index in order.
   */
  behind(
    { leads }: Pick<Collections, 'leads'>,
    position: ChangePosition | null,
    count: number,
  ): Promise<LeadDocument[]> {
    const from = position && {
      'changes.since': { $gte: position.since },
      $or: [{ 'changes.since': { $gt: position.since } }, { _id: { $gt: position._id } }],
    };
    if (position && position.since >= this.#ceiling) this.#raise(position.since, FIRST_STEP_MS);
    return this.#find(count, (ceiling) => {
      const filter = { $and: [{ 'changes.since': { $lt: ceiling } }, from ?? {}] } as Filter<LeadDocument>;
      return leads.find(filter, WITHOUT_HISTORY).sort({ 'changes.since': 1, _id: 1 }).limit(count).toArray();
    });
  }

  async #find(count: number, below: (ceiling: Date) => Promise<LeadDocument[]>): Promise<LeadDocument[]> {
    for (let step = FIRST_STEP_MS; ; step *= 2) {
      const ceiling = this.#ceiling;
      try {
        const found = await below(ceiling);
        this.#lastSuccess = ceiling;
        if (found.length === count) this.#lowerTo(found);
        if (found.length === count || ceiling === ACKNOWLEDGED) return found;
      } catch (error) {
        // Perhaps too many leads match: halve the distance for the next call.
        const highest = Math.min(ceiling.getTime(), Date.now() + AHEAD_MS);
        this.#ceiling = new Date((Math.min(this.#lastSuccess.getTime(), highest) + highest) / 2);
        throw error;
      }
      this.#raise(ceiling, step);
    }
  }

  #raise(above: Date, step: number): void {
    const raised = above.getTime() + step;
    this.#ceiling = raised > Date.now() + AHEAD_MS ? ACKNOWLEDGED : new Date(raised);
  }

  /** Lowers the ceiling so that about twice as many leads as found are below it. */
  #lowerTo(found: readonly LeadDocument[]): void {
    const [first = 0, last = 0] = [found[0], found.at(-1)].map((lead) => lead?.changes?.since?.getTime());
    const lowered = last + Math.max(last - first, 1);
    if (lowered < this.#ceiling.getTime()) this.#ceiling = new Date(lowered);
  }
}
