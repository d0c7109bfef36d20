import { setTimeout as sleep } from 'node:timers/promises';
import type { LeadIntakeClient } from '../client.ts';
import { NoAnswerError, ProblemError } from '../errors.ts';
import { OutboxError } from './outbox-error.ts';
import { reasonOfFailure } from './reasons.ts';

/** Ends a comparison early. */
export class Stopped extends Error {}

export type PacedReads = ReturnType<typeof pacedReads>;

interface PacedReadsOptions {
  readonly signal: AbortSignal | undefined;
  /** Milliseconds; may be infinite. */
  readonly maxMs: number;
  readonly client: LeadIntakeClient;
  /** Called before a wait. */
  beforeWait(): Promise<void>;
}

/** This many requests ignore the quota, so that each call compares at least one lead. */
const MIN_REQUESTS = 3;

/** A longer wait ends a comparison: after a day, it would begin anew. Beyond their maximum, timers fire immediately. */
const MAX_PAUSE_SECONDS = 24 * 60 * 60;

/** Codes that say that no such lead, or no such page, can be read. */
const NOT_THERE_CODES = ['integration_lead_not_found', 'integration_invalid_request'];

/** Makes reads that leave half of the quota to the website's own creations. */
export function pacedReads({ signal, maxMs, client, beforeWait }: PacedReadsOptions) {
  const end = performance.now() + maxMs;
  let made = 0;

  async function pause(seconds: number, reason: string): Promise<void> {
    if (seconds === 0) return;
    if (seconds > MAX_PAUSE_SECONDS || performance.now() + seconds * 1000 > end) throw new Stopped(reason);
    await beforeWait();
    await sleep(seconds * 1000, undefined, { ...(signal && { signal }) }).catch(() => {});
  }

  /** Waits until the request may be made again; throws if it may not. */
  async function waitAfter(error: unknown): Promise<void> {
    if (signal?.aborted) throw endedByCaller();
    if (!(error instanceof ProblemError || error instanceof NoAnswerError)) throw error;
    if (error instanceof ProblemError && error.code === 'integration_scope_forbidden')
      throw new OutboxError('The API key may not read leads: to compare, it needs the scope leads.read.');
    const reason = reasonOfFailure(error);
    if (error.retryAfterSeconds === undefined) throw new Stopped(reason);
    await pause(error.retryAfterSeconds, reason);
  }

  return {
    /** The number of requests. */
    made: () => made,

    /**
     * Makes a request; returns undefined when there is no such lead or page.
     *
     * @param failed the result when the service fails to process this one request (500)
     * @throws Stopped when the service fails, the caller ends it, or the time is over
     * @throws OutboxError when the key may not read leads
     */
    async read<T, F = never>(request: () => Promise<T>, failed?: F): Promise<T | F | undefined> {
      for (;;) {
        if (made >= MIN_REQUESTS)
          await pause(secondsToWait(client.quota()), 'half of the quota is left to the website');
        if (signal?.aborted) throw endedByCaller();
        if (performance.now() > end) throw new Stopped('the time is over');
        made += 1;
        try {
          return await request();
        } catch (error) {
          if (error instanceof ProblemError && NOT_THERE_CODES.includes(error.code)) return undefined;
          if (error instanceof ProblemError && error.code === 'internal_error' && failed !== undefined) return failed;
          await waitAfter(error);
        }
      }
    },
  };
}

const endedByCaller = () => new Stopped('ended by the caller');

const secondsToWait = (quota: ReturnType<LeadIntakeClient['quota']>): number =>
  quota === undefined || quota.remaining * 2 > quota.limit ? 0 : Math.max(1, quota.endsInSeconds);
