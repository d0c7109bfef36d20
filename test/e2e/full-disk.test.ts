import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { scrape } from '../support/metrics.ts';
import { aCapture, CORE_TOKEN, LEADS } from '../support/service.ts';
import { aSmallDisk, describeWithSmallDisks, type SmallDisk } from '../support/small-disk.ts';
import { readAddress, run } from '../tools/processes.ts';
import { freePort } from '../tools/servers.ts';

/** How long readiness may take to change: cores and gateways check about once a second; milliseconds. */
const READINESS_WITHIN_MS = 10_000;

// @proves crashes-31
describeWithSmallDisks('a service on SQLite whose disk is full', () => {
  /** Starts a core on a separate disk. */
  async function aCore(disk: SmallDisk) {
    const metrics = `127.0.0.1:${await freePort()}`;
    const DATABASE_URL = `sqlite:${join(disk.folder, 'leads.db')}`;
    const core = run('src/main.ts', {
      env: { DATABASE_URL, CORE_TOKEN, CORE_METRICS_ADDRESS: metrics },
      within: disk.within,
    });
    const storeUp = async () => (await scrape(`http://${metrics}/metrics`)).get('lead_intake_core_store_up');
    return { core, DATABASE_URL, storeUp };
  }

  /** Starts a core on a separate disk, with a gateway. */
  async function aService(disk: SmallDisk) {
    const { core, ...more } = await aCore(disk);
    const CORE_URL = await readAddress(core);
    const url = await readAddress(run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN } }));
    const clients = connectToCore(CORE_URL, CORE_TOKEN);
    onTestFinished(() => clients.close());
    const { secret } = await arrangeStudio(clients);
    const authorization = `Bearer ${secret}`;
    return {
      core,
      ...more,
      post: (key: string, body: object) =>
        fetch(url + LEADS, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/json', 'idempotency-key': key },
          body: JSON.stringify(body),
        }),
      list: () => fetch(url + LEADS, { headers: { authorization } }),
      readyz: async () => (await fetch(`${url}/readyz`)).status,
    };
  }

  test('a service with a full disk is unready but still reads, and is ready once there is room', async () => {
    const disk = await aSmallDisk(4096);
    const service = await aService(disk);
    await expect.poll(service.readyz, { timeout: READINESS_WITHIN_MS }).toBe(200);
    expect((await service.post(crypto.randomUUID(), aCapture())).status).toBe(201);
    expect(await service.storeUp()).toBe(1);

    disk.fill();
    const [key, capture] = [crypto.randomUUID(), aCapture({ note: 'x'.repeat(2000) })];
    // The file still has free space for a few writes.
    await expect
      .poll(async () => (await service.post(crypto.randomUUID(), aCapture({ note: 'x'.repeat(2000) }))).status, {
        timeout: READINESS_WITHIN_MS,
      })
      .toBe(503);

    await expect.poll(service.readyz, { timeout: READINESS_WITHIN_MS }).toBe(503);
    // The service stays unready, however often it is probed.
    for (const _ of times(25, () => 0)) {
      expect(await service.readyz()).toBe(503);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(await service.storeUp()).toBe(0);
    expect((await service.post(key, capture)).status).toBe(503);
    expect((await service.list()).status).toBe(200);
    const doctor = run('operator/cli.ts', {
      args: ['doctor', 'core'],
      env: { DATABASE_URL: service.DATABASE_URL },
      within: disk.within,
    });
    expect(await doctor.ended()).toBe(1);
    expect(doctor.output()).toMatch(/FAULT +database +its disk is full/);

    disk.free();
    await expect.poll(service.readyz, { timeout: READINESS_WITHIN_MS }).toBe(200);
    expect(await service.storeUp()).toBe(1);
    expect((await service.post(key, capture)).status).toBe(201);
  });

  // @proves sqlite-7
  test('a core that restarts on a full disk is not ready until there is room', async () => {
    const disk = await aSmallDisk(4096);
    const { core: first } = await aService(disk);
    await first.kill();
    disk.fill();

    const { core, storeUp } = await aCore(disk);
    await readAddress(core);
    expect(await storeUp()).toBe(0);

    disk.free();
    await expect.poll(storeUp, { timeout: READINESS_WITHIN_MS }).toBe(1);
  });

  // @proves crashes-31
  test.each([
    [
      'without inodes',
      ['i=0; while touch "$1/$i"; do i=$((i+1)); done'],
      /has no inodes left, whatever room it has: delete files/,
    ],
    ['that became read-only', ['mount -o remount,ro "$1"'], /is on a read-only file system: name another place/],
    [
      'whose folder became read-only, unlike the file',
      ['mount --bind "$1/leads.db" "$1/leads.db"', 'mount -o remount,ro "$1"'],
      /is on a read-only file system: name another place/,
    ],
  ])('doctor and the core report a disk %s', async (_, scripts, fault) => {
    const disk = await aSmallDisk(4096, 60);
    const env = { DATABASE_URL: `sqlite:${join(disk.folder, 'leads.db')}`, CORE_TOKEN };
    const put = run('operator/cli.ts', { args: ['studios', 'put', 's1'], env, within: disk.within });
    expect(await put.ended(), put.output()).toBe(0);
    for (const script of scripts) disk.inside(script);
    const doctor = run('operator/cli.ts', { args: ['doctor', 'core'], env, within: disk.within });
    expect(await doctor.ended()).toBe(1);
    expect(doctor.output()).toMatch(fault);
    expect(doctor.output()).not.toContain('can be read and written');
    const core = run('src/main.ts', { env, within: disk.within });
    expect(await core.ended()).toBe(1);
    expect(core.output()).toMatch(fault);
  });
});
