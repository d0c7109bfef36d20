import { type EndpointHealth, HEALTHY, healthAfter, mayBegin } from './endpoint-health.ts';
import { afterFailure, type Failure } from './retries.ts';
import { DELIVERED, type Outcome } from './send.ts';

/** What is decided by, of a change of a lead. */
interface State {
  readonly lead?: { readonly studioId: string; readonly id: string } | undefined;
  readonly revision: bigint;
  readonly attempts: number;
}

/** What names the lead of a change. */
export const formatChangeKey = ({ lead }: Pick<State, 'lead'>): string => `${lead?.studioId} ${lead?.id}`;

/**
 * Decides which lead an endpoint is sent when, and what becomes of it; does nothing itself, and knows no clock. It has the
 * leads that the feed has sent and that are unacknowledged. Of a lead, only the newest state waits, and while a request for
 * it is in flight none begins: so the states of each lead are sent in order.
 */
export class Schedule<Change extends State> {
  readonly #concurrency: number;
  readonly #waiting = new Map<string, Change>();
  /** Leads that have failed since the endpoint last took one. */
  readonly #failed = new Set<string>();
  /** The states that were begun, and that the core has yet to be told of; whether the feed has sent the lead since `forget`. */
  readonly #begun = new Map<string, { readonly revision: bigint; isKnown: boolean }>();
  /** The changes that a request is in flight for which began with the present settings of the endpoint, and when. */
  readonly #inFlight = new Map<Change, number>();
  #health = HEALTHY;

  /** @param concurrency the maximum number of requests in flight */
  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  get health(): EndpointHealth {
    return this.#health;
  }

  /**
   * The endpoint may be mended: it is tried at once, even if it was gone. Failures of requests already in flight are ignored.
   */
  retry(): void {
    this.#inFlight.clear();
    const { state } = this.#health;
    this.#health = state === 'gone' ? { ...HEALTHY, maxInFlight: 1 } : { ...this.#health, nextProbeAt: 0 };
  }

  /** The leads that wait, or fail in flight, are not to be sent any more, unless the feed sends them again. */
  forget(): void {
    this.#waiting.clear();
    for (const begun of this.#begun.values()) begun.isKnown = false;
  }

  /** Takes a state from the feed, which sends it again on each new connection. */
  offer(change: Change): void {
    const key = formatChangeKey(change);
    const begun = this.#begun.get(key);
    if (begun) begun.isKnown = true;
    if (begun && change.revision <= begun.revision) return;
    // In the place of the former state: the lead keeps its turn.
    if (change.revision >= (this.#waiting.get(key)?.revision ?? 0n)) this.#waiting.set(key, change);
  }

  /** Begins with a lead, if the endpoint may have a request now: with one that has not failed, if there is one. */
  begin(now: number): Change | undefined {
    if (!mayBegin(this.#health, this.#inFlight.size, this.#concurrency, now)) return undefined;
    const free = [...this.#waiting].filter(([key]) => !this.#begun.has(key));
    const [key, next] = free.find(([each]) => !this.#failed.has(each)) ?? free[0] ?? [];
    if (key === undefined || !next) return undefined;
    this.#waiting.delete(key);
    this.#begun.set(key, { revision: next.revision, isKnown: true });
    this.#inFlight.set(next, now);
    return next;
  }

  /**
   * A request has ended. Unless the lead waits on, the core is to be told of it, and then it is `settled`.
   *
   * @param random from 0 to 1
   * @returns undefined: the lead was delivered
   */
  ended(change: Change, outcome: Outcome, now: number, random: number): Failure | undefined {
    const key = formatChangeKey(change);
    const unacknowledged = new Set([...this.#waiting.keys(), ...this.#begun.keys()]).size;
    const { attempts } = change;
    const isDelivered = outcome.code === DELIVERED;
    const beganAt = this.#inFlight.get(change) ?? 0;
    const counts = this.#inFlight.delete(change) || isDelivered;
    let failure: Failure | undefined;
    if (!isDelivered) {
      const lead = { attempts, unacknowledged, random };
      failure = counts ? afterFailure(this.#health, outcome, lead) : { setAside: false };
    }
    if (counts) this.#health = healthAfter(this.#health, outcome, { beganAt, now, random });
    if (isDelivered) this.#failed.clear();
    if (failure?.setAside === false) {
      // It waits after all others.
      const newest = this.#waiting.get(key) ?? (this.#begun.get(key)?.isKnown ? change : undefined);
      this.#waiting.delete(key);
      if (newest) this.#waiting.set(key, newest);
      this.#failed.add(key);
      this.#begun.delete(key);
    }
    return failure;
  }

  /** The core was told what became of a state. */
  settled(change: Change): void {
    const key = formatChangeKey(change);
    if ((this.#begun.get(key)?.revision ?? 0n) <= change.revision) this.#begun.delete(key);
  }
}
