import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { times } from '../support/builders.ts';
import { scrape } from '../support/metrics.ts';
import { PLANTED, ROOT } from '../tools/processes.ts';
import { describeIf, freePort } from '../tools/servers.ts';

interface Process {
  readonly url: string;
  readonly metrics: string;
  readonly stdout: Socket | null;
  /** Sends SIGTERM; returns the exit status, or the signal that killed the process. */
  stop(): Promise<number | string>;
}

/**
 * Runs a gateway at a known address, because its log may be unreadable. A core has the same modules for log, traces and metrics.
 *
 * @param stdout a pipe to this process, or a file descriptor
 */
async function start(stdout: 'pipe' | number, env: Readonly<Record<string, string>> = {}): Promise<Process> {
  const metrics = `127.0.0.1:${await freePort()}`;
  const settings = {
    GATEWAY_PORT: '0',
    SHUTDOWN_DRAIN_MS: '0',
    CORE_URL: 'http://127.0.0.1:1',
    GATEWAY_METRICS_ADDRESS: metrics,
  };
  const child = spawn(process.execPath, [join(ROOT, 'gateway/main.ts')], {
    env: { PATH: process.env.PATH, ...PLANTED, ...settings, ...env },
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

/** The ways in which an output cannot accept data. */
type Way = 'full' | 'stalled' | 'dead';

const LINES = 'lead_intake_log_lines_dropped_total';
const SPANS = 'lead_intake_spans_dropped_total';

/** The standard output for each way, and what breaks it once the processes run. */
const LOGS: Record<Way, () => { readonly stdout: 'pipe' | number; readonly begin?: (stdout: Socket) => void }> = {
  full: () => ({ stdout: openSync('/dev/full', 'w') }),
  // Nothing reads this output, so it fills the buffers of the system.
  stalled: () => ({ stdout: 'pipe' }),
  dead: () => ({ stdout: 'pipe', begin: (stdout) => stdout.destroy() }),
};

/** Opens connections to the metrics. */
const scrapers =
  (count: number, use: (socket: Socket) => void) =>
  ({ metrics }: Process) =>
    times(count, () => {
      const socket = connect(Number(new URL(metrics).port), '127.0.0.1').on('error', () => {});
      socket.once('connect', () => use(socket));
    });

const REQUEST = 'GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n';

/** Scrapers that hold all connections. */
const METRICS: Record<Way, (gateway: Process) => void> = {
  full: scrapers(300, (socket) => socket.resume()),
  stalled: scrapers(12, (socket) => socket.write(REQUEST.repeat(100))),
  dead: scrapers(300, (socket) => socket.write(REQUEST, () => socket.resetAndDestroy())),
};

/** Starts a receiver of traces that answers with the function. */
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
describeIf(existsSync('/dev/full'), 'outputs that accept no more data', 'run it on Linux', () => {
  // @proves node-30 bounds-30 bounds-31
  test.each(['full', 'stalled', 'dead'] as const)(
    'requests are served and losses counted while log, traces and metrics are %s',
    async (way) => {
      const { stdout, begin } = LOGS[way]();
      const gateway = await start(stdout, { OTEL_EXPORTER_OTLP_ENDPOINT: await RECEIVERS[way]() });
      if (gateway.stdout) begin?.(gateway.stdout);

      for (const lost of [LINES, SPANS]) await sendUntilLost(gateway, lost);
      METRICS[way](gateway);
      expect(await sendMany(gateway)).toEqual([404]);
      const series = () =>
        scrape(gateway.metrics).then(
          ({ size }) => size,
          () => 0,
        );
      await expect.poll(series).not.toBe(0);
      expect(await gateway.stop()).toBe(0);
    },
  );
});

/** Sends enough concurrent requests to fill the log. Returns the statuses that occurred. */
async function sendMany({ url }: Process): Promise<number[]> {
  const headers = { 'x-request-id': 'x'.repeat(128) };
  const send = async () => {
    const response = await fetch(`${url}/v1`, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  return [...new Set(await Promise.all(times(200, send)))];
}

/** Sends requests until a metric of losses has counted one. Expects each request to be served. */
async function sendUntilLost(gateway: Process, metric: string): Promise<void> {
  while (((await scrape(gateway.metrics)).get(metric) ?? 0) === 0) expect(await sendMany(gateway)).toEqual([404]);
}

/** Parses the lines of a log. Each of them must be complete. */
const splitLines = (log: string) =>
  log
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { msg?: string; dropped?: number });

/** Returns the sum of the dropped items that the lines report. */
const droppedIn = (lines: ReturnType<typeof splitLines>, msg: RegExp) =>
  lines
    .filter((line) => msg.test(line.msg ?? ''))
    .map(({ dropped = 0 }) => dropped)
    .reduce((sum, n) => sum + n, 0);

// @proves crashes-14
test('a log with a slow reader has complete lines, and one that counts the missing lines', async () => {
  const gateway = await start('pipe');
  await sendUntilLost(gateway, LINES);
  let log = '';
  gateway.stdout?.on('data', (chunk) => {
    log += chunk;
  });

  await expect.poll(() => log.includes('log lines dropped')).toBe(true);
  const lost = (await scrape(gateway.metrics)).get(LINES);
  await expect.poll(() => droppedIn(splitLines(log), /^log lines dropped/)).toBe(lost);
  expect(await gateway.stop()).toBe(0);
});

// @proves crashes-14
test('spans that a receiver rejects are counted, and logged once it accepts others', async () => {
  let isAccepting = false;
  const OTEL_EXPORTER_OTLP_ENDPOINT = await aReceiver((response) => response.writeHead(isAccepting ? 200 : 400).end());
  const gateway = await start('pipe', { OTEL_EXPORTER_OTLP_ENDPOINT });
  let log = '';
  gateway.stdout?.on('data', (chunk) => {
    log += chunk;
  });
  await sendUntilLost(gateway, SPANS);
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
  expect(droppedIn(splitLines(log), /^spans dropped/)).toBe(lost);
  expect(await gateway.stop()).toBe(0);
});
