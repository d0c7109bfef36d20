import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { scrape } from '../support/metrics.ts';
import { CORE_TOKEN, createAt, LEADS } from '../support/service.ts';
import { PLANTED, ROOT, temporaryFolder } from '../tools/processes.ts';
import { describeIf, freePort } from '../tools/servers.ts';

/** More requests than the log may keep lines, and the tracer spans, that wait. */
const REQUESTS = 3600;

/** Requests at a time. */
const CLIENTS = 16;

interface Process {
  readonly url: string;
  readonly metrics: string;
  readonly stdout: Socket | null;
  /** Sends SIGTERM; returns the exit status, or the signal that killed the process. */
  stop(): Promise<number | string>;
}

interface Outputs {
  /** Standard output: nothing, a pipe to this process, or a file descriptor. */
  readonly stdout?: 'ignore' | 'pipe' | number;
  readonly env?: Readonly<Record<string, string>>;
  readonly within?: readonly string[];
  /** A shell's redirection of standard output. */
  readonly into?: string;
}

/** Runs a process of the product whose address is known without its log. */
async function start(file: string, { stdout = 'ignore', env = {}, within = [], into }: Outputs): Promise<Process> {
  const metrics = `127.0.0.1:${await freePort()}`;
  const node = [process.execPath, join(ROOT, file)];
  const [command = '', ...args] = [...within, ...(into ? ['sh', '-c', `exec "$0" "$1" > ${into}`, ...node] : node)];
  const child = spawn(command, args, {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      ...PLANTED,
      CORE_PORT: '0',
      GATEWAY_PORT: '0',
      SHUTDOWN_DRAIN_MS: '0',
      CORE_TOKEN,
      QUOTA_LIMIT: '1000000',
      [file.startsWith('src') ? 'CORE_METRICS_ADDRESS' : 'GATEWAY_METRICS_ADDRESS']: metrics,
      ...env,
    },
    stdio: ['ignore', stdout, 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  return {
    url,
    metrics: `http://${metrics}/metrics`,
    stdout: child.stdout as Socket | null,
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      const [code, signal] = await exited;
      return code ?? signal;
    },
  };
}

/** Starts both processes with the same outputs. */
async function startBoth(outputs: Outputs) {
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  const core = await start('src/main.ts', { ...outputs, env: { DATABASE_URL, ...outputs.env } });
  const gateway = await start('gateway/main.ts', { ...outputs, env: { CORE_URL: core.url, ...outputs.env } });
  const clients = connectToCore(core.url, CORE_TOKEN);
  const { secret } = await arrangeStudio(clients);
  clients.close();
  return { core, gateway, both: [core, gateway], secret };
}

type Service = Awaited<ReturnType<typeof startBoth>>;

async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(url, { headers });
  await response.arrayBuffer();
  return response.status;
}

/** Expects each of many requests to be served. */
async function expectService({ gateway, secret }: Service, requests: number): Promise<void> {
  const headers = { authorization: `Bearer ${secret}`, 'x-request-id': 'x'.repeat(128) };
  await Promise.all(
    times(CLIENTS, async () => {
      for (let sent = 0; sent < requests / CLIENTS; sent += 1) {
        // A machine that is busy with other work may refuse some at first.
        await expect.poll(() => statusOf(`${gateway.url}${LEADS}`, headers)).toBe(200);
      }
    }),
  );
  await expect.poll(async () => (await createAt(gateway.url, secret)).status).toBe(201);
}

/** How outputs cannot take everything. */
type Way = 'full' | 'stalled' | 'dead';

const LINES = 'lead_intake_log_lines_dropped_total';
const SPANS = 'lead_intake_spans_dropped_total';

/** A log, and how it is broken when the processes run. */
const LOGS: Record<Way, () => { readonly stdout: 'pipe' | number; readonly begin?: (stdout: Socket) => void }> = {
  full: () => ({ stdout: openSync('/dev/full', 'w') }),
  // What nothing reads arrives in the buffers of the system only.
  stalled: () => ({ stdout: 'pipe' }),
  dead: () => ({ stdout: 'pipe', begin: (stdout) => stdout.destroy() }),
};

/** Opens connections to the metrics of both processes. */
const scrapers =
  (count: number, use: (socket: Socket) => void) =>
  ({ both }: Service) => {
    for (const { metrics } of both) {
      times(count, () => {
        const socket = connect(Number(new URL(metrics).port), '127.0.0.1').on('error', () => {});
        socket.once('connect', () => use(socket));
      });
    }
  };

const REQUEST = 'GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n';

/** Expects a scraper to be served after others have held all connections. */
const expectMetrics = async ({ both }: Service) => {
  for (const { metrics } of both)
    await expect
      .poll(() =>
        scrape(metrics).then(
          ({ size }) => size,
          () => 0,
        ),
      )
      .not.toBe(0);
};

/** Scrapers that hold the connections of both processes. */
const METRICS: Record<Way, (service: Service) => void> = {
  full: scrapers(300, (socket) => socket.resume()),
  stalled: scrapers(12, (socket) => socket.write(REQUEST.repeat(100))),
  dead: scrapers(300, (socket) => socket.write(REQUEST, () => socket.resetAndDestroy())),
};

/** A receiver of traces that answers as the function does. */
async function aReceiver(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => request.resume().on('end', () => answer(response)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const RECEIVERS: Record<Way, () => Promise<string>> = {
  full: () => aReceiver((response) => response.writeHead(503).end()),
  stalled: () => aReceiver(() => {}),
  dead: async () => `http://127.0.0.1:${await freePort()}`,
};

// @proves crashes-14
describeIf(existsSync('/dev/full'), 'outputs that cannot take everything', 'run it on Linux', () => {
  // @proves node-30 bounds-30 bounds-31
  test.each(['full', 'stalled', 'dead'] as const)(
    'each request is served, what is lost is counted, and both processes stop: log, traces and metrics are %s',
    async (way) => {
      const { stdout, begin } = LOGS[way]();
      const service = await startBoth({ stdout, env: { OTEL_EXPORTER_OTLP_ENDPOINT: await RECEIVERS[way]() } });
      for (const each of service.both) if (each.stdout) begin?.(each.stdout);

      await expectService(service, REQUESTS);

      for (const { metrics } of service.both) {
        for (const lost of [LINES, SPANS]) {
          await expect.poll(async () => (await scrape(metrics)).get(lost), { interval: 500 }).toBeGreaterThan(0);
        }
      }
      METRICS[way](service);
      await expectService(service, 160);
      await expectMetrics(service);
      for (const { stop } of [service.gateway, service.core]) expect(await stop()).toBe(0);
    },
  );
});

/** Sends requests until a metric counts something, and returns its value. */
async function lostBy({ url, metrics }: Process, metric: string): Promise<number> {
  const headers = { 'x-request-id': 'x'.repeat(128) };
  for (;;) {
    const lost = (await scrape(metrics)).get(metric) ?? 0;
    if (lost > 0) return lost;
    await Promise.all(times(200, async () => (await fetch(`${url}/v1`, { headers })).arrayBuffer()));
  }
}

/** Lines, each of which must be whole. */
const linesOf = (log: string) =>
  log
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { msg?: string; dropped?: number });

/** The sum of what the lines say was dropped. */
const droppedIn = (lines: ReturnType<typeof linesOf>, msg: RegExp) =>
  lines
    .filter((line) => msg.test(line.msg ?? ''))
    .map(({ dropped = 0 }) => dropped)
    .reduce((sum, n) => sum + n, 0);

// @proves crashes-14
test('a log whose reader was late has whole lines, and one that says how many are missing', async () => {
  const gateway = await start('gateway/main.ts', { stdout: 'pipe' });
  await lostBy(gateway, LINES);
  let log = '';
  gateway.stdout?.on('data', (chunk) => {
    log += chunk;
  });

  await expect.poll(() => log.includes('log lines dropped')).toBe(true);
  const lost = (await scrape(gateway.metrics)).get(LINES);
  await expect.poll(() => droppedIn(linesOf(log), /^log lines dropped/)).toBe(lost);
  expect(await gateway.stop()).toBe(0);
});

// @proves crashes-14
test('spans that a receiver did not accept are counted, and logged once it accepts others', async () => {
  let isAccepting = false;
  const OTEL_EXPORTER_OTLP_ENDPOINT = await aReceiver((response) => response.writeHead(isAccepting ? 200 : 400).end());
  const gateway = await start('gateway/main.ts', { stdout: 'pipe', env: { OTEL_EXPORTER_OTLP_ENDPOINT } });
  let log = '';
  gateway.stdout?.on('data', (chunk) => {
    log += chunk;
  });
  await lostBy(gateway, SPANS);
  const refusals = () =>
    log.split('spans are dropped: their receiver does not accept them. Check OTEL_EXPORTER_OTLP_ENDPOINT').length - 1;
  await expect.poll(refusals).toBe(1);
  isAccepting = true;

  await expect
    .poll(async () => {
      await fetch(`${gateway.url}/v1`);
      return log.includes('spans dropped');
    })
    .toBe(true);
  const lost = (await scrape(gateway.metrics)).get(SPANS);
  expect(droppedIn(linesOf(log), /^spans dropped/)).toBe(lost);
  expect(await gateway.stop()).toBe(0);
});
