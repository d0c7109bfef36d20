import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandsOf, describeWithTools, type Outcome, runCommands } from '../support/examples.ts';
import { ROOT } from '../support/processes.ts';
import { aCapture, aService, expectLead, type Service, type StudioWithKey } from '../support/service.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';

// Each test runs programs, all at once.
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

/** What a program does with a lead, sent as its README says. */
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

/** The same program that tries but twice. */
function lessPatient(command: string): string {
  const [path = ''] = /examples\/\S+/.exec(command) ?? [];
  const copy = join(folder, basename(path));
  const [patient, impatient] = [readFileSync(join(ROOT, path), 'utf8'), /\bATTEMPTS ?= ?6\b/];
  expect(patient).toMatch(impatient);
  writeFileSync(
    copy,
    patient.replace(impatient, (text) => text.replace('6', '2')),
  );
  return command.replace(path, copy);
}

/** A way to a service that counts the creations which take it, and loses so many of their replies. */
async function proxyTo({ url }: Service, losses = 0) {
  const proxy = await startProxy('127.0.0.1', Number(new URL(url).port));
  proxies.push(proxy);
  const seen = { creations: 0 };
  proxy.loseReplies({
    of(bytes) {
      const isCreation = bytes.toString('latin1').startsWith('POST ');
      if (isCreation) seen.creations += 1;
      return isCreation && losses > 0;
    },
    count: losses,
  });
  return { ...proxy, seen, url: `http://127.0.0.1:${proxy.port}` };
}

/** The lead that a program has printed. */
function leadIn({ status, stdout, stderr }: Outcome) {
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return expectLead(JSON.parse(stdout).lead);
}

for (const command of commandsOf('rest').trim().split('\n')) {
  const [program = ''] = command.split(' ');
  const tools = [`${program} --version`, ...(program === 'bash' ? ['curl --version'] : [])];

  describeWithTools(tools, `REST example in ${program}`, () => {
    const create = createBy(command);

    test('creates a lead, and gives the same one when it is run again with the same key', async () => {
      const studio = await service.aStudioWithKey();
      const [lead, key] = [aCapture({ displayName: `Zoë "O'Neil" \\ 🦉`, note: 'a\nb' }), randomUUID()];

      const created = leadIn(await create(service.url, studio, lead, key));

      expect(created).toMatchObject({ displayName: lead.displayName, note: lead.note });
      expect(leadIn(await create(service.url, studio, lead, key))).toEqual(created);
      expect(await service.countLeads(studio.studioId)).toBe(1);
    });

    test('makes one lead when the reply is lost after the write', async () => {
      const studio = await service.aStudioWithKey();
      const proxy = await proxyTo(service, 1);

      const { id } = leadIn(await create(proxy.url, studio, aCapture()));

      expect(proxy.lost()).toBe(1);
      expect(await service.countLeads(studio.studioId)).toBe(1);
      expect((await service.get(studio.secret, `/${id}`)).status).toBe(200);
    });

    test('waits as long as the service asks when the quota is used up', async () => {
      const studio = await scarce.aStudioWithKey();
      const { url, seen } = await proxyTo(scarce);

      // On a slow machine the quota may be whole again before the program asks.
      do {
        await scarce.post(studio.secret, aCapture());
        seen.creations = 0;
        leadIn(await create(url, studio, aCapture()));
      } while (seen.creations === 1);

      // Refused once: a repetition that came too early would have been refused again.
      expect(seen.creations).toBe(2);
    });

    test('takes a contact that has an open lead as a normal outcome', async () => {
      const studio = await service.aStudioWithKey();
      const lead = aCapture();
      await service.post(studio.secret, lead);

      expect(await create(service.url, studio, lead)).toEqual({ status: 0, stdout: 'open already\n', stderr: '' });
    });

    test('does not repeat what cannot succeed, and says what is wrong', async () => {
      const studio = await service.aStudioWithKey();
      const { url, seen } = await proxyTo(service);
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
      expect(seen.creations).toBe(2);
    });

    test('that never hears of the outcome says so, and with which key to repeat', async () => {
      const studio = await service.aStudioWithKey();
      const proxy = await proxyTo(service, 2);
      const [lead, key] = [aCapture(), randomUUID()];

      expect(await createBy(lessPatient(command))(proxy.url, studio, lead, key)).toEqual({
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
