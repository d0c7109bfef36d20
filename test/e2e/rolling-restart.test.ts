import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { allLeads, arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { describeWithHaproxy, startHaproxy } from '../support/haproxy.ts';
import { createAt } from '../support/service.ts';
import { type RunningProcess, readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { freePort } from '../tools/servers.ts';

const CALLERS = 8;

/** The pause of a caller between two requests, so that the processors have time for other suites. */
const PAUSE_MS = 100;

/** The number of requests served between two restarts. */
const SERVED_BETWEEN = 100;

/** Shorter drains than the guide says, the guide's drain, and a much longer one; milliseconds. */
const DRAINS_MS = process.env.SOAK ? [1000, 6000, 15_000, 60_000] : [2000];

describeWithHaproxy('behind HAProxy', () => {
  // @proves crashes-7 crashes-24 node-18
  test.each(DRAINS_MS)(
    'two gateways and two cores that drain for %i ms restart one by one, and no request fails',
    async (drainMs) => {
      const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}`, SHUTDOWN_DRAIN_MS: `${drainMs}` };
      const ports = [await freePort(), await freePort(), await freePort(), await freePort()] as const;
      const haproxy = await startHaproxy(ports.slice(0, 2), ports.slice(2));
      const startCore = (port: number) => run('src/main.ts', { env: { ...env, CORE_PORT: `${port}` } });
      const startGateway = (port: number) =>
        run('gateway/main.ts', {
          env: { ...env, GATEWAY_PORT: `${port}`, CORE_URL: haproxy.coreUrl, QUOTA_LIMIT: '1000000000' },
        });
      const start = (index: number) => (index < 2 ? startGateway : startCore)(ports[index] as number);
      const servers: RunningProcess[] = times(4, start);
      await Promise.all(servers.map(readAddress));
      const untilUp = (port: number) => expect.poll(() => haproxy.readState(port)).toBe('UP');
      await Promise.all(ports.map(untilUp));
      const clients = connectToCore(haproxy.coreUrl);
      onTestFinished(() => clients.close());
      const { studioId, secret } = await arrangeStudio(clients);

      let isOver = false;
      let served = 0;
      const failures: unknown[] = [];
      const callers = times(CALLERS, async () => {
        while (!isOver) {
          try {
            const response = await createAt(haproxy.apiUrl, secret);
            const answer = await response.text();
            if (response.status === 201) served += 1;
            else failures.push(`${response.status} ${answer}`);
          } catch (error) {
            failures.push(error);
          }
          await sleep(PAUSE_MS);
        }
      });
      const untilMoreServed = async () => {
        const before = served;
        await expect.poll(() => served).toBeGreaterThanOrEqual(before + SERVED_BETWEEN);
      };
      try {
        // The cores first, as in an upgrade.
        for (const index of [2, 3, 0, 1]) {
          await untilMoreServed();
          const server = servers[index] as RunningProcess;
          server.child.kill('SIGTERM');
          expect(await server.ended()).toBe(0);
          servers[index] = start(index);
          await readAddress(servers[index]);
          await untilUp(ports[index] as number);
        }
        await untilMoreServed();
      } finally {
        isOver = true;
        await Promise.all(callers);
      }
      expect(failures).toEqual([]);
      expect(await allLeads(clients, studioId)).toHaveLength(served);
    },
  );
});
