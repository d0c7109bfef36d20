import type { Collection, Db } from 'mongodb';
import { STORE_SILENCE_MS } from '../../../common/deadlines.ts';
import type { StoreCommand } from '../store.ts';
import type { CausalSessions } from './causal-sessions.ts';
import { isDuplicate } from './is-duplicate.ts';

/** The document that a check writes. Only this service's readiness uses its collection. */
interface ReadinessDocument {
  readonly _id: 'core';
  readonly checkedAt: Date;
}

/**
 * Whether a write can succeed, which reads do not tell: without a majority, on a full disk, or with a role that may not
 * write. A check writes unless an insert has succeeded since the last check, and no write has failed.
 */
export class WriteCheck {
  readonly #sessions: CausalSessions;
  readonly #readiness: Collection<ReadinessDocument>;
  #sinceCheck: 'succeeded' | 'failed' | undefined;

  constructor(database: Db, sessions: CausalSessions) {
    this.#sessions = sessions;
    this.#readiness = database.collection('readiness');
  }

  /** Performs a command, and takes note of whether writes succeed. */
  async observe<Result>(name: StoreCommand['name'], command: () => Promise<Result>): Promise<Result> {
    try {
      const result = await command();
      // An update may have matched, and so written, nothing.
      if (name === 'insert') this.#sinceCheck ??= 'succeeded';
      return result;
    } catch (error) {
      if (name !== 'find' && !isDuplicate(error)) this.#sinceCheck = 'failed';
      throw error;
    }
  }

  /** Rejects unless a write has succeeded since the last check. */
  async check(): Promise<void> {
    const sinceCheck = this.#sinceCheck;
    this.#sinceCheck = undefined;
    if (sinceCheck === 'succeeded') return;
    const write = () =>
      this.#sessions.run((session) =>
        this.#readiness.updateOne(
          { _id: 'core' },
          { $set: { checkedAt: new Date() } },
          { session, upsert: true, maxTimeMS: STORE_SILENCE_MS },
        ),
      );
    // Of two cores that create the document, one is refused; it is there then.
    await write().catch((error) => (isDuplicate(error) ? write() : Promise.reject(error)));
  }
}
