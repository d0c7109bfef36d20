import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createChance } from '../../../test/tools/chance.ts';
import type { ServedService } from '../../../test/tools/served-service.ts';
import { startProxy } from '../../../test/tools/tcp-proxy.ts';
import { testSize } from '../../../test/tools/test-size.ts';
import type { Driver } from './drivers.ts';
import type { OutboxUnderTest } from './on-each-database.ts';
import { aCapture, eventually, TABLE, type Website } from './website.ts';

/** The number of random kills for each language on each database. Other tests kill at chosen moments. */
export const KILLS = testSize('OUTBOX_KILLS', { usual: 0, soak: 100 });

/** Seeds the random kills, delays and leads. */
const SEED = Number(process.env.OUTBOX_SEED ?? randomInt(2 ** 32));

console.info(`Kills of outboxes from OUTBOX_SEED=${SEED}`);

const LEASE_MS = 5 * 60 * 1000;

/** Whether the bytes contain a request that creates a lead. */
const isCreation = (request: Buffer): boolean => request.includes('POST /v1/');

/** Defines the tests that kill forms and workers. `testOnce` defines those that depend on no database. */
export function testKills(
  service: ServedService,
  { name, aWebsite }: OutboxUnderTest,
  testOnce: ReturnType<typeof test.runIf>,
): void {
  /** Creates a website with a waiting lead, and a proxy between it and the service. */
  async function aWaitingLead(onTestFinished: (end: () => Promise<void>) => void) {
    const website = await aWebsite();
    const { hostname, port } = new URL(service.url);
    const proxy = await startProxy(hostname, Number(port));
    onTestFinished(() => proxy.stop());
    const capture = aCapture();
    await website.add(capture);
    return { website, proxy, capture, settings: { baseUrl: `http://127.0.0.1:${proxy.port}` } };
  }

  /** Expects the lead to be leased to the killed worker, and to be delivered once after the lease. */
  async function expectSentOnceAfterLease(website: Website, displayName: string): Promise<void> {
    const [row] = await website.rows();
    expect(row).toMatchObject({ state: 'waiting', attempts: 1, capture: expect.stringContaining(displayName) });
    expect((await website.run('deliver')).result).toMatchObject({ delivered: 0, postponed: 0, waiting: 1 });
    expect(row?.next_attempt_at).toBeGreaterThan(Date.now());
    expect(row?.next_attempt_at).toBeLessThanOrEqual(Date.now() + LEASE_MS);
    await website.letTimePass();
    expect((await website.run('deliver')).result).toMatchObject({ delivered: 1, waiting: 0 });
    expect(await website.rows()).toMatchObject([{ state: 'delivered', attempts: 2, capture: null }]);
    expect(await website.leads()).toEqual([displayName]);
  }

  testOnce(
    `${name}: creates no second lead if the worker is killed before it gets the response`,
    async ({ onTestFinished }) => {
      const { website, proxy, capture, settings } = await aWaitingLead(onTestFinished);
      proxy.loseReplies({ of: isCreation, by: 'silence' });
      const worker = website.begin('deliver', {}, settings);
      await eventually(() => proxy.lost() > 0);
      await worker.process.kill();
      expect(await website.leads()).toEqual([capture.displayName]);
      await expectSentOnceAfterLease(website, capture.displayName);
    },
  );

  test(`${name}: a lead arrives once if its worker is killed before the lease or the outcome`, async ({
    onTestFinished,
  }) => {
    const { website, proxy, capture, settings } = await aWaitingLead(onTestFinished);
    const release = await website.database.lock(TABLE);
    const early = website.begin('deliver', {}, settings);
    await website.database.writersWait(1);
    await early.process.kill();
    await release();
    expect(proxy.opened()).toBe(0);
    // The database server may still execute statements of the killed worker.
    await website.database.endConnections();
    await website.database.run(`UPDATE ${TABLE} SET attempts = 0`);
    await website.letTimePass();

    proxy.silence();
    const late = website.begin('deliver', {}, settings);
    await eventually(() => proxy.opened() > 0);
    const releaseAgain = await website.database.lock(TABLE);
    proxy.heal();
    await eventually(async () => (await website.leads()).length === 1);
    await website.database.writersWait(1);
    await late.process.kill();
    await releaseAgain();
    await website.letTimePass();
    await website.run('deliver');
    expect(await website.rows()).toMatchObject([{ state: 'delivered', capture: null }]);
    expect(await website.leads()).toEqual([capture.displayName]);
  });

  test.runIf(KILLS > 0)(
    `${name}: no lead is lost or duplicated when forms and workers are killed at random`,
    async ({ onTestFinished }) => {
      const website = await aWebsite();
      const { hostname, port } = new URL(service.url);
      const proxy = await startProxy(hostname, Number(port));
      onTestFinished(() => proxy.stop());
      const settings = { baseUrl: `http://127.0.0.1:${proxy.port}`, deadlineMs: 1500 };
      const chance = createChance(SEED);
      const running = new Set<Driver>();
      onTestFinished(async () => void (await Promise.all([...running].map(({ process }) => process.kill()))));
      const begin = (command: string, args: object): Driver => {
        const driver = website.begin(command, args, settings);
        running.add(driver);
        return driver;
      };
      const kill = async (driver: Driver): Promise<void> => {
        await sleep(chance.between(0, 400));
        await driver.process.kill();
      };

      const rolledBack: string[] = [];
      const reported: string[] = [];
      for (let kills = 0; kills < KILLS; kills += 2) {
        const leads = Array.from({ length: 6 }, () => {
          const capture = aCapture();
          const end = chance.oneOf(['commit', 'commit', 'rollback']);
          if (end === 'rollback') rolledBack.push(capture.displayName);
          return { capture, end };
        });
        chance.oneOf([() => proxy.heal(), () => proxy.heal(), () => proxy.refuse()])();
        await website.letTimePass();
        const form = begin('add', { leads });
        const workers = [begin('deliver', {}), begin('deliver', {})];
        // Kills both workers, or only one.
        await Promise.all([kill(form), ...workers.slice(chance.between(0, 1)).map(kill)]);
        await Promise.all([...running].map(({ process }) => process.ended()));
        running.clear();
        reported.push(...form.lines().flatMap(({ added }) => (added === undefined ? [] : [String(added)])));
      }
      proxy.heal();
      await website.letTimePass();
      // The database server may still execute statements of killed processes.
      await website.database.endConnections();
      for (let waiting = 1; waiting > 0; ) {
        const { result } = await website.run('deliver');
        expect(result.refused).toBe(0);
        waiting = Number(result.waiting);
        await website.letTimePass();
      }

      const committed = (await website.database.run('SELECT note FROM visits')).map(({ note }) => String(note));
      const because = `OUTBOX_SEED=${SEED}`;
      expect(await website.leads(), because).toEqual(committed.sort());
      expect(committed.filter((each) => rolledBack.includes(each))).toEqual([]);
      const rows = await website.rows();
      expect(rows, because).toHaveLength(committed.length);
      for (const row of rows) expect(row, because).toMatchObject({ state: 'delivered', capture: null });
      const keys = rows.map(({ idempotency_key }) => idempotency_key);
      expect(
        reported.filter((key) => !keys.includes(key)),
        because,
      ).toEqual([]);
    },
  );
}
