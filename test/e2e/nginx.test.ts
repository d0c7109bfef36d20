import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { describeWithNginx, GUIDE, startNginx } from '../support/nginx.ts';
import { aCapture, createAt, LEADS } from '../support/service.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';
import { freePort } from '../tools/servers.ts';

/** Enough bodies to exceed nginx's default limit of 1 MiB. */
const CREATIONS = 1200;
const NOTE = 'x'.repeat(1500);

const findPort = (url: string) => Number(new URL(url).port);

describeWithNginx('behind nginx', () => {
  // @proves crashes-24
  test('a gateway sends any number of bytes to its core through nginx, and no request fails', async () => {
    const core = await readAddress(
      run('src/main.ts', { env: { DATABASE_URL: `sqlite:${temporaryFolder()}/leads.db` } }),
    );
    const port = await freePort();
    await startNginx(GUIDE.cores, port, [findPort(core)]);
    const env = { CORE_URL: `http://127.0.0.1:${port}`, QUOTA_LIMIT: '1000000000' };
    const gateway = await readAddress(run('gateway/main.ts', { env }));
    const clients = connectToCore(core);
    onTestFinished(() => clients.close());
    const { secret } = await arrangeStudio(clients);

    const failed: number[] = [];
    await Promise.all(
      times(8, async () => {
        for (let sent = 0; sent < CREATIONS / 8; sent += 1) {
          const { status } = await createAt(gateway, secret, {}, aCapture({ note: NOTE }));
          if (status !== 201) failed.push(status);
        }
      }),
    );
    expect(failed).toEqual([]);
  });

  // @proves exchange-10
  test('each operation works when one of two cores behind nginx hangs', async () => {
    const env = { DATABASE_URL: `sqlite:${temporaryFolder()}/leads.db` };
    const cores = [run('src/main.ts', { env }), run('src/main.ts', { env })];
    const addresses = await Promise.all(cores.map(readAddress));
    const port = await freePort();
    await startNginx(GUIDE.cores, port, addresses.map(findPort));
    const gateway = await readAddress(run('gateway/main.ts', { env: { CORE_URL: `http://127.0.0.1:${port}` } }));
    const clients = connectToCore(addresses[0] as string);
    onTestFinished(() => clients.close());
    const { secret } = await arrangeStudio(clients);
    const ask = async () => {
      const created = await createAt(gateway, secret);
      const reads = await Promise.all(
        ['', created.headers.get('location')?.replace(LEADS, '')].map((path = '/none') =>
          fetch(`${gateway}${LEADS}${path}`, { headers: { authorization: `Bearer ${secret}` } }),
        ),
      );
      return [created, ...reads].map(({ status }) => status);
    };
    expect(await ask()).toEqual([201, 200, 200]);
    cores[1]?.child.kill('SIGSTOP');
    onTestFinished(() => void cores[1]?.child.kill('SIGCONT'));
    // A new call may reach the hanging core again, so each may take several tries of CORE_CALL_MS.
    await expect.poll(ask, { timeout: 120_000 }).toEqual([201, 200, 200]);
    for (const _ of times(10, () => 0)) expect(await ask()).toEqual([201, 200, 200]);
  });
});
