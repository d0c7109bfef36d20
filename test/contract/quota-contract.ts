import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  MAX_HOLD_MS,
  type Quota,
  type QuotaCaller,
  type QuotaDecision,
  type QuotaLimits,
  QuotaUnavailable,
} from '../../gateway/admission/quota/quota-port.ts';
import { newId } from '../../src/domain/new-id.ts';
import { times } from '../support/builders.ts';
import {
  aBearer,
  type Decided,
  expectConsistentTimes,
  type KeyPolicy,
  type QuotaOfKeys,
  quotaOfKeys,
} from './quota-of-keys.ts';

/** Opens the quotas of one adapter. */
export interface QuotaOpener {
  /** Opens a quota that has counted nothing for the keys of the tests. The suite closes it. */
  open(windowSeconds: number): Promise<Quota>;
  /** The number of quotas that share their counters, like gateways. */
  readonly gateways: number;
  /** Lets time pass for a key and its studio, without waiting; milliseconds. */
  pass(bearer: QuotaCaller, ms: number): Promise<void>;
  /** The address with which `openQuota` opens the same quota; known only while tests run. */
  redisUrl(): string | undefined;
  readonly isCluster?: boolean;
}

/** Longer than any test. */
const A_MINUTE = 60;

/** The promises of `gateway/admission/quota/quota-port.ts` while the counting server is available, for one adapter. */
export function quotaContract(name: string, opener: QuotaOpener): void {
  const { open, gateways, pass, redisUrl, isCluster = false } = opener;
  describe(`quota contract: ${name}`, () => {
    async function openedQuota(windowSeconds = A_MINUTE): Promise<Quota> {
      const quota = await open(windowSeconds);
      onTestFinished(() => quota.close());
      return quota;
    }

    const opened = async (limit: number, windowSeconds?: number): Promise<QuotaOfKeys> =>
      quotaOfKeys(await openedQuota(windowSeconds), limit);

    /** Makes requests one after another. */
    async function consumed(quota: QuotaOfKeys, apiKeyId: string, count: number): Promise<QuotaDecision[]> {
      const decisions: QuotaDecision[] = [];
      for (let index = 0; index < count; index += 1) decisions.push(await quota.consume(apiKeyId));
      return decisions;
    }

    /** Returns a key that is used at all gateways in turn, with a clock and a log of the decisions. */
    async function keyUsedInTurn(policy: KeyPolicy) {
      const quotas = (await Promise.all(times(gateways, () => open(policy.windowSeconds)))).map((quota) =>
        quotaOfKeys(quota, policy.limit),
      );
      const apiKeyId = newId();
      const log: Decided[] = [];
      let passedMs = 0;
      const now = () => performance.now() + passedMs;
      return {
        log,
        async use(patienceMs = MAX_HOLD_MS): Promise<QuotaDecision> {
          const sentAt = now();
          const decision = await (quotas[log.length % gateways] as QuotaOfKeys).consume(apiKeyId, patienceMs);
          log.push({ sentAt, gotAt: now(), decision });
          return decision;
        },
        async pass(ms: number): Promise<void> {
          await pass(aBearer(apiKeyId), ms);
          passedMs += ms;
        },
        close: () => Promise.all(quotas.map((quota) => quota.close())),
      };
    }

    // @proves quota-5
    test('each decision agrees with the times announced before, whenever requests come', async () => {
      const aPolicy = fc.record({
        limit: fc.integer({ min: 1, max: 3 }),
        windowSeconds: fc.integer({ min: 1, max: 3 }),
      });
      const pauses = fc.array(fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 400, max: 1600 })), {
        minLength: 8,
        maxLength: 25,
      });
      await fc.assert(
        fc.asyncProperty(aPolicy, pauses, async (policy, pausesMs) => {
          const key = await keyUsedInTurn(policy);
          for (const [index, pauseMs] of pausesMs.entries()) {
            // Some requests have waited before, and have less patience left.
            await key.use(index % 3 === 0 ? pauseMs / 2 : MAX_HOLD_MS);
            await key.pass(pauseMs);
          }
          await key.close();
          expectConsistentTimes(policy, key.log);
        }),
        { numRuns: gateways > 1 ? 60 : 1000 },
      );
    });

    // @proves quota-5
    describe('a refusal', () => {
      const LIMITS = { key: 1, studio: 1 };

      /** The limits at each of the moments 0 to 19. */
      const CHANGES: readonly [name: string, limitsAt: (moment: number) => QuotaLimits][] = [
        ['although the limits are raised', () => ({ key: 9, studio: 9 })],
        [
          'although the limit of the studio is removed and returns',
          (moment) => ({ key: 9, studio: moment % 4 < 2 ? undefined : 9 }),
        ],
      ];
      const SUBJECTS = ['key', 'studio'] as const;

      /** Refuses a request of a key in the middle of a window of 5 s. */
      async function refused(owner: (typeof SUBJECTS)[number]) {
        const studioId = newId();
        const [first, other] = times(2, () => ({ apiKeyId: newId(), studioId })) as [QuotaCaller, QuotaCaller];
        const bearer = owner === 'key' ? first : other;
        const limits = owner === 'key' ? { key: 1, studio: undefined } : LIMITS;
        const quota = await openedQuota(5);
        await quota.consume(first, limits);
        await pass(first, 1300);
        const begun = performance.now();
        const decision = await quota.consume(bearer, limits, MAX_HOLD_MS);
        expect(decision).toMatchObject({ admitted: false, waitMs: 0, owner, limit: 1 });
        return { quota, bearer, decision, begun };
      }

      describe.each(SUBJECTS)('refusal because of the %s', (owner) => {
        test.each(CHANGES)('a refusal is repeated until its announced end, and then over, %s', async (_, limitsAt) => {
          const { quota, bearer, decision, begun } = await refused(owner);
          let passedMs = 0;
          const now = () => performance.now() + passedMs;
          let promised = begun + decision.resetSeconds * 1000;
          // The decision is made between the request and its response.
          let over = now() + decision.resetSeconds * 1000;
          for (const [moment] of times(20, () => 0).entries()) {
            const at = begun + (decision.resetSeconds * 1000 * moment) / 20;
            const ms = Math.max(0, Math.floor(at - now()));
            await pass(bearer, ms);
            passedMs += ms;
            // Sometimes asks a gateway that has started since.
            const asked = gateways > 1 && moment % 5 === 4 ? await openedQuota(5) : quota;
            const sentAt = now();
            const again = await asked.consume(bearer, limitsAt(moment), MAX_HOLD_MS);

            expect(again.admitted && now() < promised, `moment ${moment}`).toBe(false);
            if (again.admitted) return;
            expect(again.limit).toBe(1);
            if (again.waitMs > 0) expect(now() + again.waitMs).toBeGreaterThanOrEqual(promised - 2);
            else {
              promised = Math.max(promised, sentAt + again.resetSeconds * 1000);
              over = Math.max(over, now() + again.resetSeconds * 1000);
            }
            expect(promised - begun).toBeLessThan(decision.resetSeconds * 1000 + 1000);
          }
          await pass(bearer, Math.max(0, Math.ceil(over - now())));
          expect(await quota.consume(bearer, limitsAt(20), MAX_HOLD_MS)).toMatchObject({ admitted: true });
        });

        // The clock of a process never goes back, so only Redis is tested.
        test.runIf(gateways > 1)('a refusal lasts no longer than announced if clocks go back an hour', async () => {
          for (const limits of [LIMITS, { key: 9, studio: 9 }]) {
            const { quota, bearer, decision } = await refused(owner);
            await pass(bearer, -3_600_000);

            const again = await quota.consume(bearer, limits, MAX_HOLD_MS);

            expect(again).toMatchObject({ admitted: false, owner });
            expect(again.resetSeconds).toBeLessThanOrEqual(5);
            await pass(bearer, Math.max(decision.resetSeconds, again.resetSeconds) * 1000);
            expect(await quota.consume(bearer, limits, MAX_HOLD_MS)).toMatchObject({ admitted: true });
          }
        });
      });

      // @proves bounds-27
      test('a waiting crowd is admitted up to one window, and the rest is refused', async () => {
        const quota = await opened(3, 1);
        const apiKeyId = newId();
        await consumed(quota, apiKeyId, 3);
        await pass(aBearer(apiKeyId), 200);
        const consumedAtLast = async () => {
          for (let patienceMs = MAX_HOLD_MS; ; ) {
            const decision = await quota.consume(apiKeyId, patienceMs);
            if (decision.waitMs === 0) return decision;
            patienceMs -= decision.waitMs;
            await sleep(decision.waitMs);
          }
        };

        const decisions = await Promise.all(times(60, consumedAtLast));

        // A busy machine may need more than one window.
        expect(decisions.filter(({ admitted }) => admitted).length).toBeGreaterThanOrEqual(3);
        for (const { admitted, resetSeconds } of decisions) if (!admitted) expect(resetSeconds).toBe(1);
        const other = newId();
        expect(await quota.consume(other, MAX_HOLD_MS)).toMatchObject({ admitted: true, remaining: 2 });
      });
    });

    // @proves quota-9
    test('a refund admits exactly one more request of the same key', async () => {
      const quota = await opened(3);
      const [apiKeyId, other] = [newId(), newId()];
      const [{ windows } = { windows: [] }] = await consumed(quota, apiKeyId, 3);
      await consumed(quota, other, 3);

      await quota.refund(apiKeyId, windows);

      const decisions = await Promise.all(times(10, () => quota.consume(apiKeyId)));
      expect(decisions.filter(({ admitted }) => admitted)).toEqual([expect.objectContaining({ remaining: 0 })]);
      expect(await quota.consume(other)).toMatchObject({ admitted: false });
    });

    // @proves quota-9
    test('a refund admits no request before the announced time', async () => {
      const quota = await opened(1);
      const apiKeyId = newId();
      const { windows } = await quota.consume(apiKeyId);
      expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: false });

      await quota.refund(apiKeyId, windows);

      expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: false });
    });

    // @proves quota-9
    test('a refund neither prolongs its window nor starts a new one, even if the count is empty', async () => {
      const quota = await opened(1, 2);
      const apiKeyId = newId();
      const start = performance.now();
      const { windows } = await quota.consume(apiKeyId);
      const began = performance.now();
      await sleep(1200);

      await quota.refund(apiKeyId, windows);
      const again = await quota.consume(apiKeyId);

      // On a busy machine the window may have ended.
      if (performance.now() - start < 2000) expect(again).toMatchObject({ admitted: true, resetSeconds: 1 });
      await sleep(began + 2000 + 5 - performance.now());
      expect(await quota.consume(apiKeyId)).toMatchObject({ admitted: true, resetSeconds: 2 });
    });

    // @proves quota-9
    test('a refund after the end of its window does not count in another window', async () => {
      const quota = await opened(2, 1);
      const [idle, busy] = [newId(), newId()];
      const { windows: ofIdle } = await quota.consume(idle);
      const { windows: ofBusy } = await quota.consume(busy);
      await sleep(1010);

      await quota.refund(idle, ofIdle);
      expect(await quota.consume(idle)).toMatchObject({ remaining: 1 });
      await quota.consume(busy);
      await quota.refund(busy, ofBusy);
      expect(await quota.consume(busy)).toMatchObject({ remaining: 0 });
    });

    // @proves quota-2
    describe('a studio with a limit', () => {
      const LIMITS = { key: 3, studio: 5 };
      const aKeyIn = (studioId: string) => ({ apiKeyId: newId(), studioId });
      const selectAdmitted = (decisions: readonly QuotaDecision[]) => decisions.filter(({ admitted }) => admitted);

      // @proves bounds-28
      test("a studio's twenty keys share its limit under any number of concurrent requests", async () => {
        const quotas = await Promise.all(times(gateways, () => openedQuota()));
        const studioId = newId();
        const keys = times(20, () => aKeyIn(studioId));
        const limits = { key: 10, studio: 47 };

        const decisions = await Promise.all(
          times(400, (index) => (quotas[index % gateways] as Quota).consume(keys[index % 20] as QuotaCaller, limits)),
        );

        expect(selectAdmitted(decisions)).toHaveLength(47);
        expect(new Set(decisions.filter(({ admitted }) => !admitted).map(({ owner }) => owner))).toContain('studio');
      });

      test('the studio is reported when it has fewer requests left than the key, otherwise the key', async () => {
        const quota = await openedQuota();
        const studioId = newId();
        const [one, other] = [aKeyIn(studioId), aKeyIn(studioId)];
        const consumed = async (bearer: QuotaCaller) => {
          const { admitted, owner, limit, remaining } = await quota.consume(bearer, LIMITS);
          return [admitted, owner, limit, remaining];
        };

        expect(await consumed(one)).toEqual([true, 'key', 3, 2]);
        expect(await consumed(one)).toEqual([true, 'key', 3, 1]);
        expect(await consumed(other)).toEqual([true, 'key', 3, 2]);
        expect(await consumed(one)).toEqual([true, 'key', 3, 0]);
        expect(await consumed(one)).toEqual([false, 'key', 3, 0]);
        expect(await consumed(other)).toEqual([true, 'studio', 5, 0]);
        expect(await consumed(other)).toEqual([false, 'studio', 5, 0]);
        expect(await consumed(aKeyIn(studioId))).toEqual([false, 'studio', 5, 0]);
        expect(await consumed(aKeyIn(newId()))).toEqual([true, 'key', 3, 2]);
      });

      test('a request refused by the studio or the key does not count for the other', async () => {
        const quota = await openedQuota();
        const studioId = newId();
        const [one, other] = [aKeyIn(studioId), aKeyIn(studioId)];
        await Promise.all(times(20, () => quota.consume(one, LIMITS)));
        await pass(one, 4000);

        const otherDecisions = await Promise.all(times(20, () => quota.consume(other, LIMITS)));

        expect(selectAdmitted(otherDecisions)).toHaveLength(2);
        // The studio's window ends first. The key's has not counted the requests that the studio refused.
        await pass(one, 57_000);
        expect(await quota.consume(other, LIMITS)).toMatchObject({ admitted: true, owner: 'key', remaining: 0 });
      });

      test('when both windows refuse, the longer refusal is reported and applies', async () => {
        const quota = await openedQuota(10);
        const studioId = newId();
        const [early, late] = [aKeyIn(studioId), aKeyIn(studioId)];
        const limits = { key: 1, studio: 2 };
        await quota.consume(early, limits);
        await pass(early, 4000);
        // No time has passed for the late key.
        await quota.consume(late, limits);

        const { admitted, owner, resetSeconds } = await quota.consume(late, limits);

        expect({ admitted, owner }).toEqual({ admitted: false, owner: 'key' });
        expect(resetSeconds).toBeGreaterThan(6);
        expect(await quota.consume(aKeyIn(studioId), limits)).toMatchObject({ admitted: false, owner: 'studio' });
        await pass(late, 7000);
        expect(await quota.consume(late, limits)).toMatchObject({ admitted: false, owner: 'key' });
        expect(await quota.consume(aKeyIn(studioId), limits)).toMatchObject({ admitted: true });
      });

      test('a studio gets no refund for a request that it did not count', async () => {
        const quota = await openedQuota();
        const studioId = newId();
        const [one, other] = [aKeyIn(studioId), aKeyIn(studioId)];
        await quota.consume(other, { key: 9, studio: 2 });
        const { windows } = await quota.consume(one, { key: 9, studio: undefined });

        await quota.refund(one, windows);

        expect(await quota.consume(other, { key: 9, studio: 2 })).toMatchObject({ admitted: true, remaining: 0 });
        expect(await quota.consume(other, { key: 9, studio: 2 })).toMatchObject({ admitted: false });
      });

      test('a higher, lower or removed studio limit applies immediately', async () => {
        const quota = await openedQuota();
        const bearer = aKeyIn(newId());
        for (let count = 0; count < 4; count += 1) await quota.consume(bearer, { key: 100, studio: 10 });

        expect(await quota.consume(bearer, { key: 100, studio: 6 })).toMatchObject({ owner: 'studio', remaining: 1 });
        expect(await quota.consume(bearer, { key: 6, studio: 100 })).toMatchObject({ owner: 'key', remaining: 0 });
        expect(await quota.consume(bearer, { key: 100, studio: undefined })).toMatchObject({ remaining: 93 });
        expect(await quota.consume(bearer, { key: 100, studio: 6 })).toMatchObject({
          admitted: false,
          owner: 'studio',
        });
      });
    });

    test('an open quota is ready, and the check counts for no key', async () => {
      const quota = await opened(1);

      expect(await Promise.all(times(3, () => quota.fault()))).toEqual(times(3, () => undefined));
      expect(await quota.consume(newId())).toMatchObject({ admitted: true });
    });

    test('a closed quota is not ready, counts nothing and can be closed again', async () => {
      const quota = await opened(1);
      await quota.consume(newId());
      const unused = await opened(1);
      for (const each of [quota, quota, unused]) await each.close();

      for (const each of [quota, unused]) expect(await each.fault()).toEqual(expect.any(String));
      await expect(quota.consume(newId())).rejects.toBeInstanceOf(QuotaUnavailable);
      await expect(quota.refund(newId(), [1])).rejects.toBeInstanceOf(QuotaUnavailable);
    });

    test('a closed quota does not keep its process alive', async () => {
      expect(await processWithClosedQuota(redisUrl(), isCluster)).toBe('admitted, closed');
    });
  });
}

/**
 * Opens, uses and closes a quota in another process. Returns the output when that process has ended by itself.
 *
 * @throws Error if the process fails, or something keeps it alive
 */
export async function processWithClosedQuota(redisUrl: string | undefined, isCluster: boolean): Promise<string> {
  const script = `
    const { openQuota } = await import(${JSON.stringify(import.meta.resolve('../../gateway/admission/quota/open-quota.ts'))});
    const quota = await openQuota(${A_MINUTE}, ${JSON.stringify(redisUrl)}, ${isCluster});
    const outcome = await quota.consume({ apiKeyId: '${newId()}', studioId: 'studio-1' }, { key: 1 }).then(() => 'admitted', ({ name }) => name);
    await quota.close();
    process.stdout.write(outcome + ', closed');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    timeout: 15_000,
  });
  return stdout;
}
