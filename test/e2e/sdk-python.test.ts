import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { codeSamplesIn } from '../support/code-samples.ts';
import { DOCUMENTED_TYPES } from '../support/documented-types.ts';
import { describeWithTools, exampleOf } from '../support/examples.ts';
import { PYTHON_TOOL, pythonWithClient } from '../support/python.ts';
import { aService } from '../support/service.ts';
import { startProxy } from '../support/tcp-proxy.ts';

// The package and its dependencies are downloaded, built and installed, which takes a while on a busy machine.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

const MYPY = 'mypy==2.4.1';

const execute = promisify(execFile);
const service = aService();

const firstLead = exampleOf('sdk/python/README.md', 'first-lead');
const contactForm = exampleOf('sdk/python/README.md', 'contact-form');

// @proves leads-23
describeWithTools([PYTHON_TOOL], 'the client for Python', () => {
  let website: string;
  let bin: string;
  const write = (file: string, text: string) => writeFileSync(join(website, file), text);
  afterAll(() => rmSync(website, { recursive: true }));
  beforeAll(async () => {
    website = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
    bin = await pythonWithClient(website, MYPY);
    write('contact_form.py', contactForm);
  });

  /** Runs a program of the website against the service; returns its output. */
  async function run(program: string, secret: string, url = service.url): Promise<string> {
    const env = { PATH: process.env.PATH, LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret };
    // Warnings, such as of unclosed resources, are errors.
    const { stdout } = await execute(join(bin, 'python'), ['-W', 'error', '-c', program], { cwd: website, env });
    return stdout.trim();
  }

  /** A program that runs `body` with a client. */
  const withClient = (body: string): string => `
import asyncio, contact_form, lead_intake, os, uuid
from lead_intake import EmailContact, LeadCapture
grace = LeadCapture("Grace", EmailContact("grace@example.org"), note="Asks for a trial.")
async def main():
    async with lead_intake.AsyncLeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]) as leads:
${body.replaceAll(/^/gm, '        ')}
asyncio.run(main())`;

  // @proves clients-1
  test('runs the sample of each operation in the reference', async () => {
    const { secret } = await service.aStudioWithKey();
    const { create, read, list } = codeSamplesIn('python', service.url);
    const id = await run(create, secret);
    expect(await run(read(id), secret)).toBe('new');
    expect(await run(list, secret)).toBe('Grace Hopper');
  });

  test('creates the first lead of its README, once installed from its package', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const [, id] = /^lead (\S+)$/.exec(await run(firstLead, secret)) ?? [];
    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([{ id, displayName: 'Grace Hopper' }]);
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('runs the contact form of its README', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const key = randomUUID();
    const printed = await run(
      withClient(`for key in ("${key}", "${key}", str(uuid.uuid4())):
    print(await contact_form.on_contact_form(leads, grace, key))
print(*await contact_form.names(leads))`),
      secret,
    );
    const [first = '', ...others] = printed.split('\n');
    const [, id] = /^lead (\S+)$/.exec(first) ?? [];
    expect(others).toEqual([`lead ${id}`, `open already: ${id}`, 'Grace']);
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('ends a cancelled task immediately, whether it waits for a response or for the next attempt', async () => {
    const { secret } = await service.aStudioWithKey();
    const proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    proxy.silence();
    const printed = await run(
      withClient(`async def cancelled(leads):
    task = asyncio.create_task(leads.create_lead(grace))
    await asyncio.sleep(0.2)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
gone = lead_intake.AsyncLeadIntakeClient("http://127.0.0.1:1", "${newKeySecret()}")
print(await cancelled(leads), await cancelled(gone))
await gone.aclose()`),
      secret,
      `http://127.0.0.1:${proxy.port}`,
    ).finally(() => proxy.stop());
    expect(printed).toBe('cancelled cancelled');
  });

  test('ends an abandoned attempt, and sends nothing for it', async () => {
    let requests = 0;
    const dripping = createServer((_, response) => {
      requests += 1;
      response.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => response.write(' '), 20);
      response.on('close', () => clearInterval(drip));
    }).listen(0, '127.0.0.1');
    await once(dripping, 'listening');
    const printed = await run(
      `
import os, socket, threading
from lead_intake import EmailContact, LeadCapture, LeadIntakeClient, NoAnswerError

look_up, may_look_up = socket.getaddrinfo, threading.Event()

def look_up_late(*arguments, **options):
    may_look_up.wait()
    return look_up(*arguments, **options)

def give_up(leads):
    try:
        leads.create_lead(LeadCapture("Grace", EmailContact("grace@example.org")))
    except NoAnswerError as error:
        print(error.written, error.__cause__)

def wait_for_ends():
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()

limits = {"deadline_seconds": 1.1, "attempt_timeout_seconds": 0.3}
with LeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"], **limits) as leads:
    give_up(leads)
    wait_for_ends()
    socket.getaddrinfo = look_up_late
    give_up(leads)
    may_look_up.set()
    wait_for_ends()`,
      newKeySecret(),
      `http://127.0.0.1:${(dripping.address() as AddressInfo).port}`,
    ).finally(() => dripping.close());
    expect(printed.split('\n')).toEqual(Array(2).fill('unknown no answer within 0.3 s'));
    expect(requests).toBe(1);
  });

  test('has every field and value of the OpenAPI document', async () => {
    const printed = await run(
      `
import json, lead_intake as l
from dataclasses import fields
from inspect import signature
def camel(name): return name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:])
def names(kind): return sorted(camel(field.name) for field in fields(kind))
def contact(kind): return sorted(l.LeadCapture("", kind("")).to_json()["contact"])
other = set(signature(l.LeadIntakeError).parameters) | {"retry_after_seconds"}
print(json.dumps({
    **{kind.__name__: names(kind) for kind in (l.LeadCapture, l.Lead, l.LeadList)},
    **{kind.__name__: contact(kind) for kind in (l.EmailContact, l.PhoneContact)},
    "ProblemDetails": sorted(camel(name) for name in signature(l.ProblemError).parameters if name not in other),
    **{kind.__name__: sorted(kind) for kind in (l.LeadStage, l.ProblemCode)},
}))`,
      '',
    );
    expect(JSON.parse(printed)).toEqual(DOCUMENTED_TYPES);
  });
});
