import { type EndpointHealth, HEALTHY, healthAfter, mayBegin } from './endpoint-health.ts';
import { afterFailure, type Failure } from './retries.ts';
import { DELIVERED, type Outcome } from './send.ts';

/** The parts of a lead change that scheduling looks at. */
interface ScheduledChange {
  readonly lead?: { readonly studioId: string; readonly id: string } | undefined;
  readonly revision: bigint;
  readonly attempts: number;
}

/** Returns the identity of a change's lead. */
export const formatChangeKey = ({ lead }: ScheduledChange): string => `${lead?.studioId} ${lead?.id}`;

/**
 * Decides which lead an endpoint gets when, and what happens after an attempt. It does no I/O and reads no clock. It holds the
 * unacknowledged leads from the feed. Only the newest state of a lead waits, and only one state is in flight, so a lead's states are sent
 * in order.
 */
export class Schedule<Change extends ScheduledChange> {
  readonly #concurrency: number;
  readonly #waiting = new Map<string, Change>();
  /** Leads with a failure since the endpoint's last success. */
  readonly #failed = new Set<string>();
  /** States that were sent and not yet reported to the core. `isKnown`: the feed has sent the lead since `forget`. */
  readonly #begun = new Map<string, { readonly revision: bigint; isKnown: boolean }>();
  /** When each request in flight began, if it uses the endpoint's current settings. */
  readonly #inFlight = new Map<Change, number>();
  #health = HEALTHY;

  /** @param concurrency the maximum number of requests in flight */
  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  get health(): EndpointHealth {
    return this.#health;
  }

  /** Probes the endpoint at once, even a gone one: it may be fixed. Ignores failures of requests already in flight. */
  retry(): void {
    this.#inFlight.clear();
    const { state } = this.#health;
    this.#health = state === 'gone' ? { ...HEALTHY, maxInFlight: 1 } : { ...this.#health, nextProbeAt: 0 };
  }

  /** Drops waiting leads and stops retrying failed ones until the feed sends them again. */
  forget(): void {
    this.#waiting.clear();
    for (const begun of this.#begun.values()) begun.isKnown = false;
  }

  /** Adds a state from the feed, which resends it on each new connection. */
  offer(change: Change): void {
    const key = formatChangeKey(change);
    const begun = this.#begun.get(key);
    if (begun) begun.isKnown = true;
    if (begun && change.revision <= begun.revision) return;
    // Replaces the former state in its position in the queue.
    if (change.revision >= (this.#waiting.get(key)?.revision ?? 0n)) this.#waiting.set(key, change);
  }

  /** Returns the next lead to send, if the endpoint may have a request now. Prefers leads that have not failed. */
  begin(now: number): Change | undefined {
    if (!mayBegin(this.#health, this.#inFlight.size, this.#concurrency, now)) return undefined;
    const free = [...this.#waiting].filter(([key]) => !this.#begun.has(key));
    const [key, next] = free.find(([lead]) => !this.#failed.has(lead)) ?? free[0] ?? [];
    if (key === undefined || !next) return undefined;
    this.#waiting.delete(key);
    this.#begun.set(key, { revision: next.revision, isKnown: true });
    this.#inFlight.set(next, now);
    return next;
  }

  /**
   * Records the end of a request. Unless the lead waits for a retry, the caller tells the core, then calls `finish`.
   *
   * @param random from 0 to 1
   * @returns undefined if the lead was delivered
   */
  end(change: Change, outcome: Outcome, now: number, random: number): Failure | undefined {
    const key = formatChangeKey(change);
    const unacknowledged = new Set([...this.#waiting.keys(), ...this.#begun.keys()]).size;
    const { attempts } = change;
    const isDelivered = outcome.code === DELIVERED;
    const beganAt = this.#inFlight.get(change) ?? 0;
    const isCounted = this.#inFlight.delete(change) || isDelivered;
    let failure: Failure | undefined;
    if (!isDelivered) {
      const lead = { attempts, unacknowledged, random };
      failure = isCounted ? afterFailure(this.#health, outcome, lead) : { setAside: false };
    }
    if (isCounted) this.#health = healthAfter(this.#health, outcome, { beganAt, now, random });
    if (isDelivered) this.#failed.clear();
    if (failure?.setAside === false) {
      // The lead goes to the end of the queue.
      const newest = this.#waiting.get(key) ?? (this.#begun.get(key)?.isKnown ? change : undefined);
      this.#waiting.delete(key);
      if (newest) this.#waiting.set(key, newest);
      this.#failed.add(key);
      this.#begun.delete(key);
    }
    return failure;
  }

  /** Records that the core knows the outcome of a state. */
  finish(change: Change): void {
    const key = formatChangeKey(change);
    if ((this.#begun.get(key)?.revision ?? 0n) <= change.revision) this.#begun.delete(key);
  }
}
