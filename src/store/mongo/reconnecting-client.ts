import { setTimeout as sleep } from 'node:timers/promises';
import type { MongoClient } from 'mongodb';
import { STORE_CALL_MS } from '../../../common/deadlines.ts';
import { StoreUnavailable, UnreadableRecord } from '../store.ts';

/** The time between two attempts to reach a database that is away; milliseconds. */
const CONNECT_AGAIN_MS = 500;

/**
 * For how long no call may be answered before the client is connected anew; milliseconds. What the driver sends over a
 * connection at the very moment at which that is lost never ends: when it is the driver's own question whether the server
 * is there, it asks no more, and fails every call for ever.
 */
const RENEW_AFTER_MS = STORE_CALL_MS;

/** A client of a database that may be away, at the beginning and whenever it likes. It tries to reach it until it is closed. */
export class ReconnectingClient {
  readonly #client: MongoClient;
  readonly #closing: AbortSignal;
  #isConnected = false;
  /** Why it is not, as the driver last said. */
  #whyNot: unknown;
  #unansweredSince: number | undefined;
  #connecting: Promise<void>;

  constructor(client: MongoClient, closing: AbortSignal) {
    this.#client = client;
    this.#closing = closing;
    // A client whose first use fails stays dead. It comes to life by being connected, and is not used before.
    this.#connecting = this.#connectBy(() => client.connect());
  }

  /** Resolves when the database is reached, or the client closed. */
  get connecting(): Promise<void> {
    return this.#connecting;
  }

  /** Asks the database within the deadline of a call. */
  async ask<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result> {
    if (!this.#isConnected) throw new StoreUnavailable('the database cannot be reached', this.#whyNot);
    try {
      const result = await withinDeadline(body);
      this.#unansweredSince = undefined;
      return result;
    } catch (error) {
      this.#unansweredSince ??= performance.now();
      if (this.#isConnected && performance.now() - this.#unansweredSince > RENEW_AFTER_MS) {
        this.#isConnected = false;
        this.#whyNot = error;
        this.#connecting = this.#connectBy(async () => {
          await this.#client.close();
          await this.#client.connect();
        });
      }
      throw error;
    }
  }

  /** Lets calls in as soon as a step succeeds that needs the database to be there. */
  async #connectBy(step: () => Promise<unknown>): Promise<void> {
    while (!this.#closing.aborted && !this.#isConnected) {
      try {
        await step();
        this.#unansweredSince = undefined;
        this.#isConnected = true;
      } catch (error) {
        this.#whyNot = error;
        await sleep(CONNECT_AGAIN_MS, undefined, { signal: this.#closing }).catch(() => {});
      }
    }
  }
}

/** The driver bounds its steps, not a whole call; and any of its errors leaves the outcome unknown. */
export async function withinDeadline<Result>(body: (deadline: AbortSignal) => Promise<Result>): Promise<Result> {
  const deadline = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      deadline.abort();
      reject(new StoreUnavailable(`no answer within ${STORE_CALL_MS} ms`));
    }, STORE_CALL_MS);
  });
  try {
    return await Promise.race([body(deadline.signal), over]);
  } catch (error) {
    const isSaid = error instanceof StoreUnavailable || error instanceof UnreadableRecord;
    throw isSaid ? error : new StoreUnavailable('the database does not answer', error);
  } finally {
    clearTimeout(timer);
  }
}
