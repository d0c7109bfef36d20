import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { expectToBeASender } from '../../sdk/test/support/senders.ts';
import { aCapture, aService, expectLead } from '../../test/support/service.ts';
import {
  describeWithTools,
  findCommands,
  type Outcome,
  runCommands,
  watchCommands,
} from '../../test/tools/commands.ts';
import { ROOT } from '../../test/tools/processes.ts';

// The tests run programs concurrently.
vi.setConfig({ testTimeout: 400_000 });

const service = aService();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the lead that a program printed. */
function leadIn({ status, stdout, stderr }: Outcome) {
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return expectLead(JSON.parse(stdout).lead);
}

/** Copies a program with shorter pauses, so that the suite does not take minutes, and with a conversation's own timeout of an attempt. */
function repeatingSooner(name: string, source: string): string {
  // Names the copy after the program, because the tests run concurrently.
  const copy = join(folder, `sooner-${name}`);
  writeFileSync(
    copy,
    source.replace(/2 ?\*\* ?\$?attempt/, '0.4 * $&').replace('--max-time 10', '--max-time $MAX_TIME'),
  );
  return copy;
}

/** Conversations that the programs cannot pass. They lose no lead: a program exits with 75, or retries too often. */
const CANNOT_HOLD: Readonly<Record<string, string>> = {
  ...(!process.env.SOAK && {
    'lost-replies/cut-at-every-byte': 'hundreds of processes: in a soak',
    'lost-replies/refusal-cut-at-every-byte': 'hundreds of processes: in a soak',
    'proxies/a-problem-with-nothing-but-a-code': 'three and a half minutes of pauses: in a soak',
  }),
  'configuration/not-a-key': 'it does not check the key',
  'configuration/not-a-base-url': 'it does not check the address',
  'retry-after/beyond-the-deadline': 'it has no deadline, and waits',
  'deadlines/too-late-for-another-attempt': 'it has no deadline, and waits',
  'encodings/an-encoding-that-no-one-knows': 'it has no deadline, and retries',
  'encodings/not-encoded-as-it-says': 'it has no deadline, and retries',
  'answers/an-answer-that-is-too-long': 'it reads whole responses',
  'encodings/a-few-bytes-for-very-many': 'it reads whole responses',
  'proxies/the-lead-of-another-request': 'it shares no connection',
};
/** Topics that mostly wait. The program that starts fastest runs them every time; the others run them only in a soak. */
const IN_SOAK: Readonly<Record<string, string>> = process.env.SOAK
  ? {}
  : Object.fromEntries(
      ['answers', 'clocks', 'deadlines', 'lost-replies', 'problems', 'proxies', 'written'].map((topic) => [
        topic,
        'in a soak',
      ]),
    );
const REPEATS_ALL_THAT_IS_FROM_ELSEWHERE = Object.fromEntries(
  [
    'proxies/a-problem-with-another-code',
    'proxies/refused-by-a-firewall',
    'proxies/redirects',
    'written/not-settled-by-a-proxy',
  ].map((name) => [name, 'it also repeats what a program in between refuses']),
);
const CANNOT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  node: REPEATS_ALL_THAT_IS_FROM_ELSEWHERE,
  php: REPEATS_ALL_THAT_IS_FROM_ELSEWHERE,
  python3: {
    ...REPEATS_ALL_THAT_IS_FROM_ELSEWHERE,
    clocks: 'time.sleep fails under faketime',
    'answers/after-early-hints': 'http.client takes them for the response',
    'lost-replies/dripping': 'the timeout of urllib bounds each step only',
  },
  bash: {
    clocks: 'curl waits by the clock on the wall',
    'retry-after/not-a-whole-number': 'curl waits until a date',
    ...Object.fromEntries(
      [
        'lost-replies/cut-at-every-byte',
        'lost-replies/refusal-cut-at-every-byte',
        'proxies/a-sign-in-page',
        'proxies/the-right-json-as-a-page',
        'proxies/json-of-something-else',
        'proxies/a-lead-without-an-id',
        'proxies/no-json-at-all',
        'proxies/nothing-at-all',
        'proxies/a-success-as-a-problem',
        'written/unknown-stays-unknown-after-a-failure',
      ].map((name) => [name, 'curl retries by the status only']),
    ),
  },
};

for (const command of findCommands('rest').trim().split('\n')) {
  const [program = ''] = command.split(' ');
  const tools = [`${program} --version`, ...(program === 'bash' ? ['curl --version'] : [])];

  describeWithTools(tools, `the REST example in ${program}`, () => {
    // @proves clients-3
    test(`the ${program} example passes every conversation chosen for it`, async () => {
      const [path = ''] = /examples\/\S+/.exec(command) ?? [];
      const copy = repeatingSooner(basename(path), readFileSync(join(ROOT, path), 'utf8'));
      // 28 s are less than the deadline of a conversation, and more than curl waits for a lost response and repeats.
      const driver = [process.execPath, 'examples/test/program-driver.ts', '28', program, copy];
      await expectToBeASender(driver, { ...CANNOT_HOLD, ...CANNOT[program], ...(program !== 'php' && IN_SOAK) });
    });

    test(`the ${program} example creates one lead per key, and exits with 75 without a response`, async () => {
      const { secret, studioId } = await service.aStudioWithKey();
      const [lead, key] = [aCapture({ displayName: `Zoë "O'Neil" \\ 🦉`, note: 'a\nb' }), randomUUID()];
      const create = (url = service.url, of = command, sent: object = lead, KEY = key) =>
        runCommands(of, { LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret, LEAD: JSON.stringify(sent), KEY });

      const created = leadIn(await create());

      expect(created).toMatchObject({ displayName: lead.displayName, note: lead.note });
      expect(leadIn(await create())).toEqual(created);
      expect(await service.countLeads(studioId)).toBe(1);
      const openAlready = (status: number) => ({ status, stdout: 'open already\n', stderr: '' });
      const another = { ...lead, note: 'On Monday, please.' };
      expect(await create(service.url, command, another, randomUUID())).toEqual(openAlready(3));
      expect(await create(service.url, command, { ...lead, note: null }, randomUUID())).toEqual(openAlready(0));

      const [path = ''] = /examples\/\S+/.exec(command) ?? [];
      const copy = join(folder, basename(path));
      const once = readFileSync(join(ROOT, path), 'utf8').replace(/(\bATTEMPTS ?= ?)6\b/, '$11');
      writeFileSync(copy, once);
      const lost = await create('http://127.0.0.1:1', command.replace(path, copy));
      expect(lost).toEqual({ status: 75, stdout: '', stderr: expect.stringContaining(key) });
    });

    test(`the ${program} example fails without an address, and suggests no later attempt`, async () => {
      const lost = await runCommands(command, { LEAD_INTAKE_KEY: 'any', LEAD: '{}', KEY: randomUUID() });
      expect([0, 75]).not.toContain(lost.status);
      expect(lost.stderr).toMatch(/LEAD_INTAKE_URL|rtrim/);
      expect(lost.stderr).not.toContain('later');
    });

    // Beyond 2^32 microseconds, and beyond 2^32 seconds.
    test.for(['4295', '9999999999'])(
      `the ${program} example waits if it is asked to wait for %s seconds`,
      async (seconds, { onTestFinished }) => {
        const server = createServer((request, response) => {
          request.resume();
          const problem = { status: 429, code: 'integration_rate_limited' };
          response.writeHead(429, { 'Content-Type': 'application/problem+json', 'Retry-After': seconds });
          response.end(JSON.stringify(problem));
        });
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        onTestFinished(() => void server.close());
        const { port } = server.address() as AddressInfo;
        const { secret } = await service.aStudioWithKey();
        const url = `http://127.0.0.1:${port}`;
        const env = {
          LEAD_INTAKE_URL: url,
          LEAD_INTAKE_KEY: secret,
          LEAD: JSON.stringify(aCapture()),
          KEY: randomUUID(),
        };
        let requests = 0;
        const first = once(server, 'request');
        server.on('request', () => {
          requests += 1;
        });

        const running = watchCommands(command, env);
        await first;
        await sleep(3000);

        expect([requests, running.child.exitCode, running.output()]).toEqual([1, null, '']);
        await running.kill();
      },
    );
  });
}

// @proves clients-3
test('the retry loop in the docs passes every conversation chosen for it', async () => {
  const page = readFileSync(join(ROOT, 'gateway/docs/pages/retries.md'), 'utf8');
  const [, loop = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? [];
  const program = `${loop}
    const [lead, key] = process.argv.slice(2);
    const { LEAD_INTAKE_URL, LEAD_INTAKE_KEY } = process.env;
    const url = LEAD_INTAKE_URL.replace(/\\/$/, '') + '/v1/integrations/leads';
    try {
      const { status, body } = await createLead(url, LEAD_INTAKE_KEY, key, JSON.parse(lead));
      const isOpen = body.code === 'integration_lead_already_open';
      if (status === 201 || isOpen) console.log(isOpen ? 'open already' : JSON.stringify(body));
      else throw Object.assign(new Error(body.code), { exitCode: 1 });
    } catch (error) {
      console.error(error.message);
      process.exitCode = error.exitCode ?? 75;
    }`;
  const copy = repeatingSooner('retries.mjs', program);
  const driver = [process.execPath, 'examples/test/program-driver.ts', '16', process.execPath, copy];
  await expectToBeASender(driver, { ...CANNOT_HOLD, ...IN_SOAK });
});
