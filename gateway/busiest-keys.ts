/** The keys that are counted in a slot, at most, and those that a report has of each order. */
const MAX_KEYS = 500;
const MAX_REPORTED = 20;

/** The last hour is so many slots, the present one among them; milliseconds. */
const SLOTS = 12;
const SLOT_MS = 300_000;

/** What a key has sent, at least, and how much of that was refused. */
interface BusyKey {
  readonly studioId: string;
  readonly apiKeyId: string;
  requests: number;
  refused: number;
  /** Of these because of the quota. */
  limited: number;
}

interface AnsweredRequest {
  readonly studioId?: string | undefined;
  readonly apiKeyId?: string | undefined;
  /** Undefined: there was no response. */
  readonly status: number | undefined;
  readonly outcome: string;
}

interface Counted extends BusyKey {
  /** How many requests of keys for which there is no place it outlasts. */
  credit: number;
}

/**
 * The keys that send most in an hour, in bounded memory (the frequent elements of Misra and Gries): while all places are taken, each
 * request of another key takes a credit from every key, and one without any leaves. So none is missing that has sent more than
 * a MAX_KEYS-th of the requests of a slot, and a request costs the same however many keys there are.
 */
export class BusiestKeys {
  readonly #clock: () => number;
  readonly #slots = new Map<number, Map<string, Counted>>();

  /** @param clock milliseconds since any moment; never goes back */
  constructor(clock = () => performance.now()) {
    this.#clock = clock;
  }

  /** Counts a request, unless its key is unknown. */
  count({ studioId, apiKeyId, status = 0, outcome }: AnsweredRequest): void {
    if (studioId === undefined || apiKeyId === undefined) return;
    const keys = this.#present();
    let counted = keys.get(apiKeyId);
    if (!counted && keys.size >= MAX_KEYS) {
      for (const [id, each] of keys) {
        each.credit -= 1;
        if (each.credit === 0) keys.delete(id);
      }
      return;
    }
    if (!counted) {
      counted = { studioId, apiKeyId, requests: 0, refused: 0, limited: 0, credit: 0 };
      keys.set(apiKeyId, counted);
    }
    counted.requests += 1;
    counted.credit += 1;
    if (status >= 400 && status < 500) counted.refused += 1;
    if (outcome === 'integration_rate_limited') counted.limited += 1;
  }

  /** Returns the number of the keys that are counted, and the first of them in both orders. */
  report() {
    this.#present();
    const sums = new Map<string, BusyKey>();
    for (const { credit: _, ...each } of [...this.#slots.values()].flatMap((keys) => [...keys.values()])) {
      const sum = sums.get(each.apiKeyId);
      sums.set(each.apiKeyId, sum ?? each);
      for (const count of ['requests', 'refused', 'limited'] as const) if (sum) sum[count] += each[count];
    }
    const first = (by: 'requests' | 'refused') => {
      const inOrder = [...sums.values()].sort((one, other) => other[by] - one[by]);
      return inOrder.slice(0, MAX_REPORTED).filter((key) => key[by] > 0);
    };
    return { keys: sums.size, byRequests: first('requests'), byRefusals: first('refused') };
  }

  /** Returns the present slot, and forgets those of more than an hour ago. */
  #present(): Map<string, Counted> {
    const number = Math.floor(this.#clock() / SLOT_MS);
    const present = this.#slots.get(number);
    if (present) return present;
    for (const each of this.#slots.keys()) if (each <= number - SLOTS) this.#slots.delete(each);
    const keys = new Map<string, Counted>();
    this.#slots.set(number, keys);
    return keys;
  }
}
