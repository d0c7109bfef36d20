import { beforeEach, describe, expect, test } from 'vitest';
import { type ApiKey, MAX_LIVE_KEYS } from '../../src/domain/api-key.ts';
import { newId } from '../../src/domain/new-id.ts';
import type { Store } from '../../src/store/store.ts';
import {
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  BY,
  DAY_MS,
  NOW,
  plus,
  STUDIO_ID,
  times,
} from '../support/builders.ts';
import type { OpenedStore } from './opened-store.ts';
import { aReplacement, describeThroughStores, keysIn } from './store-actions.ts';

/** The promises about API keys, their quotas and last use. */
export function apiKeyContract(opened: () => OpenedStore): void {
  let store: Store;
  beforeEach(() => {
    store = opened().store;
  });

  describe('api keys', () => {
    beforeEach(async () => {
      await store.putStudio(aStudio(), BY);
      await store.putMember(aMember(), BY);
    });

    async function issued(key: ApiKey = anApiKey(), now = NOW): Promise<ApiKey> {
      expect(await store.createApiKey(key, now)).toBe(true);
      return key;
    }

    async function issuedToTheLimit(overrides: Partial<ApiKey> = {}): Promise<ApiKey[]> {
      const keys: ApiKey[] = [];
      for (const key of times(MAX_LIVE_KEYS, () => anApiKey(overrides))) keys.push(await issued(key));
      return keys;
    }

    test('a created key is found by its secret and in the listing, as it was given', async () => {
      const key = await issued(anApiKey({ scopes: ['leads.read'] }));

      expect(await store.findCredential(key.secretSha256)).toEqual({
        key,
        studio: aStudio(),
        issuerRole: 'owner',
        source: null,
      });
      expect(await keysIn(store, STUDIO_ID)).toEqual([key]);
    });

    test("the credential includes the current source of the key's studio, and none of another studio", async () => {
      const { secretSha256 } = await issued();
      const source = aLeadSource();
      const foreign = aLeadSource({ studioId: 'studio-2', id: newId() });
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      for (const each of [source, foreign]) await store.putLeadSource(each, BY);
      const found = async ({ id }: { id: string }) => (await store.findCredential(secretSha256, id))?.source;

      expect(await found(source)).toEqual(source);
      expect(await found(foreign)).toBeNull();
      expect(await found({ id: newId() })).toBeNull();

      await store.putLeadSource({ ...source, enabled: false }, BY);
      expect(await found(source)).toEqual({ ...source, enabled: false });
    });

    describeThroughStores('', opened, (through) => {
      test("30 concurrent creations create 20 keys, the studio's limit", async () => {
        const keys = times(30, () => anApiKey());

        const written = await Promise.all(keys.map((key, index) => through(index).createApiKey(key, NOW)));

        expect(written.filter(Boolean)).toHaveLength(20);
        expect(await keysIn(store, STUDIO_ID)).toEqual(keys.filter((_, index) => written[index]).toReversed());
      });

      test("30 concurrent replacements of expired keys renew 20, the studio's limit", async () => {
        const keys: ApiKey[] = [];
        for (const batch of [0, 1]) {
          const expiresAt = plus(NOW, batch + 1);
          for (const key of times(15, () => anApiKey({ expiresAt }))) keys.push(await issued(key, plus(NOW, batch)));
        }

        const outcomes = await Promise.all(
          keys.map((key, index) =>
            through(index).replaceApiKey(aReplacement(key, { now: plus(NOW, 2), expiresAt: plus(NOW, DAY_MS) })),
          ),
        );

        expect(outcomes.filter(({ kind }) => kind === 'replaced')).toHaveLength(20);
        expect(outcomes.filter(({ kind }) => kind === 'limit-reached')).toHaveLength(10);
        expect(await store.createApiKey(anApiKey(), plus(NOW, 2))).toBe(false);
      });

      test('a key that is revoked during concurrent replacements stays revoked', async () => {
        const key = await issued();
        const revokedAt = plus(NOW, 1);
        const replacements = times(10, () => aReplacement(key, { expiresAt: plus(NOW, 2 * DAY_MS) }));

        await Promise.all([
          ...replacements.slice(0, 5).map((each, index) => through(index).replaceApiKey(each)),
          through(1).revokeApiKey(key.studioId, key.id, { ...BY, now: revokedAt }),
          ...replacements.slice(5).map((each, index) => through(index).replaceApiKey(each)),
        ]);

        expect(await keysIn(store, STUDIO_ID)).toMatchObject([{ id: key.id, revokedAt }]);
      });
    });

    test('each studio has its own key limit, and a key above it is not stored', async () => {
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      await issuedToTheLimit();
      const refused = anApiKey();

      expect(await store.createApiKey(refused, NOW)).toBe(false);
      expect(await store.findCredential(refused.secretSha256)).toBeNull();
      expect(await keysIn(store, STUDIO_ID)).toHaveLength(MAX_LIVE_KEYS);
      await issued(anApiKey({ studioId: 'studio-2' }));
    });

    test('an expired key frees its slot at the millisecond of its expiry', async () => {
      const expiresAt = plus(NOW, 1000);
      await issuedToTheLimit({ expiresAt });

      expect(await store.createApiKey(anApiKey(), plus(expiresAt, -1))).toBe(false);
      await issued(anApiKey(), expiresAt);
    });

    test('replacing a key changes only its secret, hint and issuer', async () => {
      const key = await issued();
      const { secretSha256, ...rest } = aReplacement(key, { memberId: 'member-2' });

      const outcome = await store.replaceApiKey({ secretSha256, ...rest });

      const renewed = { ...key, memberId: 'member-2', secretSha256, secretHint: 'wxyz' };
      expect(outcome).toEqual({ kind: 'replaced', key: renewed });
      expect(await keysIn(store, STUDIO_ID)).toEqual([renewed]);
    });

    test('replacing an expired key makes it count towards the limit again', async () => {
      const early = await issued(anApiKey({ expiresAt: plus(NOW, 1) }));
      const now = plus(NOW, 1);
      const revival = aReplacement(early, { now, expiresAt: plus(now, DAY_MS) });
      const others: ApiKey[] = [];
      for (const key of times(MAX_LIVE_KEYS, () => anApiKey())) others.push(await issued(key, now));

      expect(await store.replaceApiKey(revival)).toEqual({ kind: 'limit-reached' });
      expect((await keysIn(store, STUDIO_ID)).at(-1)).toEqual(early);
      expect(await store.findCredential(revival.secretSha256)).toBeNull();

      await store.revokeApiKey(STUDIO_ID, others[0]?.id as string, { ...BY, now });
      expect(await store.replaceApiKey(revival)).toMatchObject({ kind: 'replaced' });
      expect(await store.createApiKey(anApiKey(), now)).toBe(false);
    });

    test('an expired key whose slot was reused cannot be replaced, even by a slow clock', async () => {
      const early = await issued(anApiKey({ expiresAt: plus(NOW, 10) }));
      for (const key of times(MAX_LIVE_KEYS, () => anApiKey())) await issued(key, plus(NOW, 10));

      const behind = aReplacement(early, { now: plus(NOW, 9), expiresAt: plus(NOW, DAY_MS) });

      expect(await store.replaceApiKey(behind)).toEqual({ kind: 'limit-reached' });
    });

    test('an expired key cannot be replaced without a new expiry', async () => {
      const key = await issued(anApiKey({ expiresAt: plus(NOW, 1) }));

      expect(await store.replaceApiKey(aReplacement(key, { now: plus(NOW, 1) }))).toEqual({ kind: 'expired' });
      expect(await keysIn(store, STUDIO_ID)).toEqual([key]);
    });

    test('a revoked key stays revoked', async () => {
      const key = await issued();
      const revoked = { ...key, revokedAt: NOW };
      expect(await store.revokeApiKey(STUDIO_ID, key.id, BY)).toEqual(revoked);

      const outcome = await store.replaceApiKey(aReplacement(key, { expiresAt: plus(NOW, 2 * DAY_MS) }));

      expect(outcome).toEqual({ kind: 'revoked' });
      expect(await store.revokeApiKey(STUDIO_ID, key.id, { ...BY, now: plus(NOW, DAY_MS) })).toEqual(revoked);
      expect(await keysIn(await opened().reopen(), STUDIO_ID)).toEqual([revoked]);
    });

    test("an unknown key or another studio's key is not found, and nothing is written", async () => {
      const key = await issued();
      await store.putStudio(aStudio({ id: 'studio-2' }), BY);
      const move = aReplacement(key);

      expect(await store.replaceApiKey({ ...move, keyId: newId() })).toEqual({ kind: 'not-found' });
      expect(await store.replaceApiKey({ ...move, studioId: 'studio-2' })).toEqual({ kind: 'not-found' });
      expect(await store.revokeApiKey(STUDIO_ID, newId(), BY)).toBeNull();
      expect(await store.revokeApiKey('studio-2', key.id, BY)).toBeNull();
      expect(await keysIn(store, STUDIO_ID)).toEqual([key]);
    });

    test('a credential reflects its studio and issuer immediately, in every process', async () => {
      const another = await opened().another();
      const { secretSha256 } = await issued();
      const expectInBoth = async (...expected: unknown[]) => {
        for (const each of [store, another]) {
          const credential = await each.findCredential(secretSha256);
          expect([credential?.studio.status, credential?.issuerRole]).toEqual(expected);
        }
      };

      await expectInBoth('active', 'owner');
      await store.putMember(aMember({ role: 'staff' }), BY);
      await expectInBoth('active', 'staff');
      await store.putStudio(aStudio({ status: 'suspended' }), BY);
      await expectInBoth('suspended', 'staff');
      await another.putMember(aMember({ role: 'admin' }), BY);
      await expectInBoth('suspended', 'admin');
      await another.putStudio(aStudio(), BY);
      await expectInBoth('active', 'admin');
      await store.removeMember(STUDIO_ID, 'member-1', BY);
      await expectInBoth('active', null);
    });

    test('a credential has the role of its last issuer, not of a namesake in another studio', async () => {
      await store.putStudio(aStudio({ id: 'studio-0' }), BY);
      await store.putMember(aMember({ studioId: 'studio-0', id: 'member-2', role: 'staff' }), BY);
      await store.putMember(aMember({ id: 'member-2', role: 'admin' }), BY);
      const key = await issued();
      const next = aReplacement(key, { memberId: 'member-2' });
      await store.replaceApiKey(next);

      await store.removeMember(STUDIO_ID, 'member-1', BY);

      expect(await store.findCredential(next.secretSha256)).toMatchObject({ issuerRole: 'admin' });
    });
  });

  describe('quotas of keys and studios', () => {
    test('key and studio quotas are part of the credential, survive a restart and can be removed', async () => {
      const key = anApiKey();
      await store.putStudio(aStudio(), BY);
      await store.putMember(aMember(), BY);
      await store.createApiKey(key, NOW);
      const limits = async () => {
        const credential = await store.findCredential(key.secretSha256);
        return [credential?.key.quotaLimit, credential?.studio.quotaLimit];
      };
      expect(await limits()).toEqual([null, null]);

      expect(await store.putApiKeyQuota(STUDIO_ID, key.id, 50, BY)).toEqual({ ...key, quotaLimit: 50 });
      const put = { id: STUDIO_ID, status: undefined, regionCode: undefined };
      const studio = aStudio({ quotaLimit: 70 });
      expect(await store.putStudio({ ...put, quotaLimit: 70 }, BY)).toEqual({ kind: 'put', studio });
      await store.putStudio({ ...put, status: 'active', regionCode: null }, BY);
      const { secretSha256 } = key;
      await store.replaceApiKey(aReplacement(key, { secretSha256, secretHint: key.secretHint }));
      store = await opened().reopen();
      expect(await limits()).toEqual([50, 70]);
      expect(await store.findStudio(STUDIO_ID)).toEqual(studio);
      expect((await store.listStudios(null, 9)).records).toEqual([studio]);
      expect(await keysIn(store, STUDIO_ID)).toEqual([{ ...key, quotaLimit: 50 }]);

      expect(await store.putApiKeyQuota(STUDIO_ID, key.id, null, BY)).toEqual(key);
      expect(await store.putStudio({ ...put, quotaLimit: null }, BY)).toEqual({ kind: 'put', studio: aStudio() });
      expect(await limits()).toEqual([null, null]);
    });

    test("a key's quota cannot be set through another studio", async () => {
      const key = anApiKey();
      await store.putStudio(aStudio(), BY);
      await store.createApiKey(key, NOW);

      expect(await store.putApiKeyQuota('studio-2', key.id, 5, BY)).toBeNull();
      expect(await store.putApiKeyQuota(STUDIO_ID, newId(), 5, BY)).toBeNull();

      expect(await keysIn(store, STUDIO_ID)).toEqual([key]);
    });
  });

  describe('the last use of a key', () => {
    const use = (key: ApiKey, ms: number, unlessMs: number) => ({
      studioId: key.studioId,
      keyId: key.id,
      now: plus(NOW, ms),
      unlessSince: plus(NOW, unlessMs),
    });

    test('the last use of a key is stored unless a recent one is, and survives a new secret', async () => {
      await store.putStudio(aStudio(), BY);
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      const lastUse = async () => {
        store = await opened().reopen();
        return (await keysIn(store, STUDIO_ID))[0]?.lastUsedAt;
      };
      expect(await lastUse()).toBeNull();

      await store.recordApiKeyUse(use(key, 1000, -59_000));
      await store.recordApiKeyUse(use(key, 2000, 999));
      expect(await lastUse()).toEqual(plus(NOW, 1000));
      await store.recordApiKeyUse(use(key, 3000, 1000));
      await store.recordApiKeyUse({ ...use(key, 9000, 9000), studioId: 'studio-2' });
      expect(await lastUse()).toEqual(plus(NOW, 3000));
      expect(await store.findCredential(key.secretSha256)).toMatchObject({ key: { lastUsedAt: plus(NOW, 3000) } });

      await store.replaceApiKey(aReplacement(key));
      expect(await lastUse()).toEqual(plus(NOW, 3000));
    });

    test('the last use of a key is stored even after the clock was set back', async () => {
      await store.putStudio(aStudio(), BY);
      const key = anApiKey();
      await store.createApiKey(key, NOW);
      await store.recordApiKeyUse(use(key, 86_400_000, 86_340_000));

      await store.recordApiKeyUse(use(key, 1000, -59_000));

      expect((await keysIn(store, STUDIO_ID))[0]?.lastUsedAt).toEqual(plus(NOW, 1000));
    });
  });
}
