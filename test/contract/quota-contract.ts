import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Quota, type QuotaDecision, type QuotaPolicy, QuotaUnavailable } from '../../gateway/quota/quota.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';

/** Where one adapter's quotas are opened. */
export interface QuotaOpener {
  /** A quota that has counted nothing of the keys of this test. The suite closes it. */
  open(policy: QuotaPolicy): Promise<Quota>;
  /** What makes `openQuota` open the same; known once tests run. */
  redisUrl(): string | undefined;
  readonly isCluster?: boolean;
}

/** So long that no test sees its end. */
const A_MINUTE = 60;

/** Everything that `gateway/quota/quota.ts` promises while what counts is there, held against one adapter. */
export function quotaContract(name: string, { open, redisUrl, isCluster = false }: QuotaOpener): void {
  describe(`quota contract: ${name}`, () => {
    async function opened(limit: number, windowSeconds = A_MINUTE): Promise<Quota> {
      const quota = await open({ limit, windowSeconds });
      onTestFinished(() => quota.close());
      return quota;
    }

    /** One request after the other. */
    async function consumed(quota: Quota, apiKeyId: string, count: number): Promise<QuotaDecision[]> {
      const decisions: QuotaDecision[] = [];
      for (let index = 0; index < count; index += 1) decisions.push(await quota.consume(apiKeyId));
      return decisions;
    }

    test('of many requests at once exactly the limit is admitted', async () => {
      const quota = await opened(25);
      const apiKeyId = newId();

      const decisions = await Promise.all(times(100, () => quota.consume(apiKeyId)));

      expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(25);
    });

    test('what remains counts down to nothing and stays there', async () => {
      const decisions = await consumed(await opened(3), newId(), 5);

      expect(decisions.map(({ admitted, limit, remaining }) => [admitted, limit, remaining])).toEqual([
        [true, 3, 2],
        [true, 3, 1],
        [true, 3, 0],
        [false, 3, 0],
        [false, 3, 0],
      ]);
    });

    test('a limit of one admits one', async () => {
      const decisions = await consumed(await opened(1), newId(), 2);

      expect(decisions.map(({ admitted }) => admitted)).toEqual([true, false]);
    });

    test('keys are apart', async () => {
      const quota = await opened(1);
      const [one, other] = [newId(), newId()];
      await consumed(quota, one, 2);

      expect(await quota.consume(other)).toMatchObject({ admitted: true, remaining: 0 });
      expect(await quota.consume(one)).toMatchObject({ admitted: false });
    });

    test('the time to the end of the window is never more than the window, and requests do not prolong it', async () => {
      const decisions = await consumed(await opened(5), newId(), 20);

      const resets = decisions.map(({ resetMs }) => resetMs);
      expect(resets).toEqual(resets.toSorted((a, b) => b - a));
      expect(resets[0]).toBeLessThanOrEqual(A_MINUTE * 1000);
      expect(resets.at(-1)).toBeGreaterThan(0);
    });

    /** A key whose window is used up, the last decision on it, and a moment before that window began. */
    async function usedUp(quota: Quota, limit: number) {
      for (;;) {
        const apiKeyId = newId();
        const start = performance.now();
        const refusal = (await consumed(quota, apiKeyId, limit + 1)).at(-1);
        // On a busy machine a short window can be over before it is used up.
        if (refusal?.admitted === false) return { apiKeyId, refusal, start };
      }
    }

    test('a key that never stops asking is admitted when its window ends, not before, with a whole new window', async () => {
      const quota = await opened(3, 1);
      const { apiKeyId, refusal, start } = await usedUp(quota, 3);

      let decision = refusal;
      while (!decision.admitted) {
        expect(decision.remaining).toBe(0);
        expect(decision.resetMs).toBeGreaterThan(0);
        expect(decision.resetMs).toBeLessThanOrEqual(1000);
        await sleep(10);
        decision = await quota.consume(apiKeyId);
      }

      expect(decision.remaining).toBe(2);
      // A second, less what clocks may differ by.
      expect(performance.now() - start).toBeGreaterThan(950);
    });

    test('after the time that a refusal names, the key is admitted', async () => {
      const quota = await opened(1, 1);
      const { apiKeyId, refusal } = await usedUp(quota, 1);

      // A timer may be a millisecond early.
      await sleep(refusal.resetMs + 5);

      expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true });
    });

    test('what is put back is there for exactly one other, of the same key', async () => {
      const quota = await opened(3);
      const [apiKeyId, other] = [newId(), newId()];
      await consumed(quota, apiKeyId, 3);
      await consumed(quota, other, 3);

      await quota.putBack(apiKeyId);

      const decisions = await Promise.all(times(10, () => quota.consume(apiKeyId)));
      expect(decisions.filter(({ admitted }) => admitted)).toEqual([expect.objectContaining({ remaining: 0 })]);
      expect(await quota.consume(other)).toMatchObject({ admitted: false });
    });

    test('what is put back neither prolongs the window nor begins a new one', async () => {
      const quota = await opened(2, 1);
      const { apiKeyId, start } = await usedUp(quota, 2);

      await sleep(500);
      await quota.putBack(apiKeyId);

      const { resetMs } = await quota.consume(apiKeyId);
      // Of a second, half is over; less what clocks may differ by.
      expect(resetMs).toBeLessThan(550);
      expect(performance.now() + resetMs - start).toBeGreaterThan(950);
    });

    test('it is ready, which costs no key a request', async () => {
      const quota = await opened(1);

      expect(await Promise.all(times(3, () => quota.ready()))).toEqual([true, true, true]);
      expect(await quota.consume(newId())).toMatchObject({ admitted: true });
    });

    test('a closed quota is not ready, counts nothing and may be closed again', async () => {
      const quota = await opened(1);
      await quota.consume(newId());
      await quota.close();
      await quota.close();

      expect(await quota.ready()).toBe(false);
      await expect(quota.consume(newId())).rejects.toBeInstanceOf(QuotaUnavailable);
      await expect(quota.putBack(newId())).rejects.toBeInstanceOf(QuotaUnavailable);
    });

    test('it can be closed before it was used', async () => {
      const quota = await opened(1);
      await quota.close();

      expect(await quota.ready()).toBe(false);
    });

    test('a closed quota does not keep its process alive', async () => {
      expect(await processWithClosedQuota(redisUrl(), isCluster)).toBe('admitted, closed');
    });
  });
}

/**
 * Has a process of its own open a quota, use it and close it. Gives what it printed when it came to its end by itself.
 *
 * @throws Error when something kept it alive, or it failed
 */
export async function processWithClosedQuota(redisUrl: string | undefined, isCluster: boolean): Promise<string> {
  const script = `
    const { openQuota } = await import(${JSON.stringify(import.meta.resolve('../../gateway/quota/open-quota.ts'))});
    const quota = openQuota({ limit: 1, windowSeconds: ${A_MINUTE} }, ${JSON.stringify(redisUrl)}, ${isCluster});
    const outcome = await quota.consume('${newId()}').then(() => 'admitted', ({ name }) => name);
    await quota.close();
    process.stdout.write(outcome + ', closed');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    timeout: 15_000,
  });
  return stdout;
}
