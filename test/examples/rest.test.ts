import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandsOf, describeWithTools, type Outcome, runCommands } from '../support/examples.ts';
import { ROOT } from '../support/processes.ts';
import { aCapture, aService, expectLead, type Service, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

// The tests run programs concurrently.
vi.setConfig({ testTimeout: 120_000 });

const service = aService();
const scarce = aService({ gateway: { QUOTA_LIMIT: '1', QUOTA_WINDOW_SECONDS: '4' } });
let folder: string;
const proxies: TcpProxy[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  rmSync(folder, { recursive: true });
});

/** Runs a program of the README, which creates a lead. */
type Create = (url: string, studio: StudioWithKey, lead: object, key?: string) => Promise<Outcome>;

const createBy =
  (command: string): Create =>
  (url, { secret }, lead, key = randomUUID()) =>
    runCommands(command, {
      LEAD_INTAKE_URL: url,
      LEAD_INTAKE_KEY: secret,
      LEAD: JSON.stringify(lead),
      KEY: key,
    });

/** The command of a copy of the program that makes two attempts only. */
function withTwoAttempts(command: string): string {
  const [path = ''] = /examples\/\S+/.exec(command) ?? [];
  const copy = join(folder, basename(path));
  const [source, attempts] = [readFileSync(join(ROOT, path), 'utf8'), /\bATTEMPTS ?= ?6\b/];
  expect(source).toMatch(attempts);
  writeFileSync(
    copy,
    source.replace(attempts, (text) => text.replace('6', '2')),
  );
  return command.replace(path, copy);
}

/** A proxy to a service that counts creations, and loses the responses to a number of them. */
async function proxyTo({ url }: Service, losses = 0) {
  const proxy = await startProxy('127.0.0.1', Number(new URL(url).port));
  proxies.push(proxy);
  const received = { creations: 0 };
  proxy.loseReplies({
    of(bytes) {
      const isCreation = bytes.toString('latin1').startsWith('POST ');
      if (isCreation) received.creations += 1;
      return isCreation && losses > 0;
    },
    count: losses,
  });
  return { ...proxy, received, url: `http://127.0.0.1:${proxy.port}` };
}

/** The lead that a program printed. */
function leadIn({ status, stdout, stderr }: Outcome) {
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return expectLead(JSON.parse(stdout).lead);
}

for (const command of commandsOf('rest').trim().split('\n')) {
  const [program = ''] = command.split(' ');
  const tools = [`${program} --version`, ...(program === 'bash' ? ['curl --version'] : [])];

  describeWithTools(tools, `REST example in ${program}`, () => {
    const create = createBy(command);

    test('creates a lead, and prints the same one when it runs again with the same key', async () => {
      const studio = await service.aStudioWithKey();
      const [lead, key] = [aCapture({ displayName: `Zoë "O'Neil" \\ 🦉`, note: 'a\nb' }), randomUUID()];

      const created = leadIn(await create(service.url, studio, lead, key));

      expect(created).toMatchObject({ displayName: lead.displayName, note: lead.note });
      expect(leadIn(await create(service.url, studio, lead, key))).toEqual(created);
      expect(await service.countLeads(studio.studioId)).toBe(1);
    });

    test('creates one lead when the response is lost after the write', async () => {
      const studio = await service.aStudioWithKey();
      const proxy = await proxyTo(service, 1);

      const { id } = leadIn(await create(proxy.url, studio, aCapture()));

      expect(proxy.lost()).toBe(1);
      expect(await service.countLeads(studio.studioId)).toBe(1);
      expect((await service.get(studio.secret, `/${id}`)).status).toBe(200);
    });

    test('waits for Retry-After when the quota is used up', async () => {
      const studio = await scarce.aStudioWithKey();
      const { url, received } = await proxyTo(scarce);

      // On a slow machine a new quota window may begin before the program sends its request.
      do {
        await scarce.post(studio.secret, aCapture());
        received.creations = 0;
        leadIn(await create(url, studio, aCapture()));
      } while (received.creations === 1);

      // Refused once: an earlier retry would have been refused again.
      expect(received.creations).toBe(2);
    });

    test('treats a contact with an open lead as a normal outcome', async () => {
      const studio = await service.aStudioWithKey();
      const lead = aCapture();
      await service.post(studio.secret, lead);

      expect(await create(service.url, studio, lead)).toEqual({ status: 0, stdout: 'open already\n', stderr: '' });
    });

    test('does not retry a refusal, and prints its reason', async () => {
      const studio = await service.aStudioWithKey();
      const { url, received } = await proxyTo(service);
      const key = randomUUID();
      leadIn(await create(service.url, studio, aCapture(), key));

      expect(await create(url, studio, aCapture(), key)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('integration_idempotency_conflict'),
      });
      expect(await create(url, studio, aCapture({ displayName: '' }))).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('displayName'),
      });
      expect(received.creations).toBe(2);
    });

    test('without a response, exits with status 75 and prints the key for the retry', async () => {
      const studio = await service.aStudioWithKey();
      const proxy = await proxyTo(service, 2);
      const [lead, key] = [aCapture(), randomUUID()];

      expect(await createBy(withTwoAttempts(command))(proxy.url, studio, lead, key)).toEqual({
        status: 75,
        stdout: '',
        stderr: expect.stringContaining(key),
      });

      expect(proxy.lost()).toBe(2);
      leadIn(await create(service.url, studio, lead, key));
      expect(await service.countLeads(studio.studioId)).toBe(1);
    });
  });
}
