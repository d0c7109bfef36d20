import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { leadsIn } from '../support/exported.ts';
import { anOwnNetwork, describeWithOwnNetwork } from '../support/own-network.ts';
import { CORE_TOKEN } from '../support/service.ts';
import { ROOT, type RunningProcess, readAddress, run, temporaryFolder, watch } from '../tools/processes.ts';

/** The processes in the order of their restarts: cores first, as in an upgrade. Two of each share a port. */
const FILES = ['src/main.ts', 'src/main.ts', 'gateway/main.ts', 'gateway/main.ts'] as const;

const SETTINGS = {
  CORE_TOKEN,
  CORE_PORT: '50051',
  GATEWAY_PORT: '8080',
  REUSE_PORT: 'yes',
  REDIS_URL: 'redis://127.0.0.1:6379',
  QUOTA_LIMIT: '1000000000',
  SHUTDOWN_DRAIN_MS: '2000',
};

/** How many times each process is restarted. */
const ROUNDS = process.env.SOAK ? 10 : 1;

/** Starts two cores on one port, two gateways on another, and callers that create leads. */
async function aDeployment(migrates: boolean) {
  const within = await anOwnNetwork(migrates);
  const env = { ...SETTINGS, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` };
  const [command = '', ...args] = [...within, 'redis-server', '--save', ''];
  const redis = watch(spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  onTestFinished(() => redis.kill());
  await redis.printed(/Ready to accept connections/);
  const commandLine = (...args: string[]) => {
    const command = [join(ROOT, 'operator/cli.ts'), ...args];
    const options = { encoding: 'utf8', env: { ...process.env, ...env }, maxBuffer: 2 ** 30 } as const;
    return spawnSync(process.execPath, command, options).stdout;
  };
  const startPart = async (file: string) => {
    const part = run(file, { within, env });
    await readAddress(part);
    return part;
  };
  const parts: RunningProcess[] = [];
  for (const file of FILES) parts.push(await startPart(file));
  const { secret, sourceId } = JSON.parse(commandLine('demo', '--json'));
  const url = `http://127.0.0.1:${SETTINGS.GATEWAY_PORT}`;
  const callers = run('test/support/creating-callers.ts', { within, args: [url, secret, sourceId] });
  const created = () => callers.output().match(/created \d+/g)?.length ?? 0;
  return {
    parts,
    /** Waits until the callers have created a few hundred more leads. */
    async untilMoreCreated() {
      const enough = created() + 2;
      await expect.poll(created, { timeout: 60_000 }).toBeGreaterThanOrEqual(enough);
    },
    /** Ends a process, and then starts its successor. */
    async restart(index: number, signal: NodeJS.Signals) {
      const before = parts[index] as RunningProcess;
      before.child.kill(signal);
      expect(await before.ended()).toBe(signal === 'SIGTERM' ? 0 : signal);
      parts[index] = await startPart(FILES[index] as string);
    },
    /** Stops the callers and returns the failed requests. Expects each requested lead to exist once. */
    async end(): Promise<Record<string, number>> {
      callers.child.kill('SIGTERM');
      const [report] = await callers.printed(/\{"created".*/);
      const { created, failed } = JSON.parse(report);
      const contacts = leadsIn(commandLine('leads', 'export')).map(({ email }) => email);
      expect(new Set(contacts).size).toBe(created);
      expect(contacts).toHaveLength(created);
      return failed;
    },
  };
}

// @proves crashes-22
describeWithOwnNetwork('two gateways and two cores with REUSE_PORT', () => {
  test('two gateways and two cores restart one by one and lose no request', async () => {
    const deployment = await aDeployment(true);
    const first = [...deployment.parts];
    await deployment.untilMoreCreated();
    for (const index of Array(ROUNDS)
      .fill([...FILES.keys()])
      .flat()) {
      await deployment.restart(index, 'SIGTERM');
      await deployment.untilMoreCreated();
    }
    expect(await deployment.end()).toEqual({});
    // The kernel gave connections to both gateways.
    for (const gateway of first.slice(2)) expect(gateway.output()).toContain('"operation":"createLead"');
  });
});

/** The preface of HTTP/2, and an empty SETTINGS frame. */
const HTTP2_PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';

/** The first bytes of a client, to which the process responds. */
const FIRST = { 'gateway/main.ts': 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n', 'src/main.ts': HTTP2_PREFACE };

// @proves crashes-22
test.each(Object.entries(FIRST))(
  'with REUSE_PORT, a stopping %s closes its port at once but serves its connections',
  async (file, first) => {
    const env = { REUSE_PORT: 'yes', REDIS_URL: 'redis://127.0.0.1:1', SHUTDOWN_DRAIN_MS: '60000' };
    const running = run(file, { env: { ...env, DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` } });
    const port = Number(new URL(await readAddress(running)).port);
    const aConnection = async () => {
      const socket = connect(port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      // The port may be closed while this connection waits to be accepted.
      return socket.on('error', () => {});
    };
    const answer = async (socket: Socket) => {
      socket.write(first);
      await once(socket, 'data');
    };
    // A response on the next connection shows that this one was accepted.
    const early = await aConnection();
    await answer(await aConnection());

    running.child.kill('SIGTERM');
    const outcome = () =>
      aConnection().then(
        () => 'open',
        ({ code }) => code,
      );
    // This is long before the end of the drain.
    await expect.poll(outcome, { timeout: 20_000 }).toBe('ECONNREFUSED');
    await answer(early);
  },
);
