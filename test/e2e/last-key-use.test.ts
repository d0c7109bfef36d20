import { timestampDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, test } from 'vitest';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import type { ApiKey } from '../../src/domain/api-key.ts';
import { keyUseRecorder } from '../../src/usecases/authenticate-api-key.ts';
import { anApiKey, NOW, plus } from '../support/builders.ts';
import { aService } from '../support/service.ts';

const service = aService();

describe('the last use of a key', () => {
  test('a key shows its last use after an admitted request, but not after a refused one', async () => {
    const { studioId, memberId, secret } = await service.aStudioWithKey();
    const lastUse = async () => (await service.apiKeys.listApiKeys({ studioId, memberId })).apiKeys[0]?.lastUsedTime;
    const status = (status: StudioStatus) => service.directory.putStudio({ studio: { id: studioId, status } });
    await status(StudioStatus.SUSPENDED);
    expect((await service.get(secret)).status).toBe(402);
    await status(StudioStatus.ACTIVE);
    expect(await lastUse()).toBeUndefined();

    const before = Date.now();
    expect((await service.get(secret)).status).toBe(200);

    await expect.poll(lastUse).toBeDefined();
    const used = timestampDate((await lastUse()) as NonNullable<Awaited<ReturnType<typeof lastUse>>>).getTime();
    expect(used).toBeGreaterThanOrEqual(before);
    expect(used).toBeLessThanOrEqual(Date.now());
  });

  test('the last use of a key is written once a minute at most; failed writes are ignored', async () => {
    const writes: number[] = [];
    let key: ApiKey = anApiKey();
    let fails = false;
    const note = keyUseRecorder(async ({ now }) => {
      if (fails) throw new Error('the store is away');
      writes.push(now.getTime() - NOW.getTime());
      key = { ...key, lastUsedAt: now };
    });

    for (let ms = 0; ms <= 300_000; ms += 250) {
      // Concurrent requests all read the key before any of them writes.
      const readTogether = key;
      for (let count = 0; count < 3; count += 1) note(readTogether, plus(NOW, ms));
      expect(ms - (key.lastUsedAt as Date).getTime() + NOW.getTime()).toBeLessThan(60_000);
    }
    expect(writes).toEqual([0, 60_000, 120_000, 180_000, 240_000, 300_000]);

    fails = true;
    note(key, plus(NOW, 400_000));
    await new Promise((resolve) => setImmediate(resolve));
    fails = false;
    note(key, plus(NOW, 430_000));
    note(key, plus(NOW, 460_000));
    expect(writes.slice(-1)).toEqual([460_000]);
  });

  test.each([1, 60_000, 86_400_000])("a key's last use is written after the clock went back by %d ms", (backMs) => {
    const writes: number[] = [];
    let key: ApiKey = anApiKey();
    const note = keyUseRecorder(async ({ now }) => {
      writes.push(now.getTime() - NOW.getTime());
      key = { ...key, lastUsedAt: now };
    });
    note(key, NOW);

    for (const ms of [-backMs, 1 - backMs, 60_000 - backMs]) note(key, plus(NOW, ms));

    expect(writes).toEqual([0, -backMs, 60_000 - backMs]);
  });
});
