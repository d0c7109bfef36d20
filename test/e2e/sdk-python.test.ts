import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { plantInCopy } from '../planted-bugs/plant-in-copy.ts';
import { PYTHON_OUTBOX_BUGS } from '../planted-bugs/python-client-bugs.ts';
import { codeSamplesIn } from '../support/code-samples.ts';
import { DOCUMENTED_TYPES } from '../support/documented-types.ts';
import { describeWithTools, exampleOf } from '../support/examples.ts';
import { ROOT, sharedFolder, watch } from '../support/processes.ts';
import { PYTHON_TOOL, pythonWithClient } from '../support/python.ts';
import { aService } from '../support/service.ts';
import { startProxy } from '../support/tcp-proxy.ts';
import { queryFile } from '../support/website-databases.ts';

// The package and its dependencies are downloaded, built and installed, which takes a while on a busy machine.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

const execute = promisify(execFile);
const service = aService();

/** The programs of the README, by their file names on a website. */
const PROGRAMS = {
  'first_lead.py': 'first-lead',
  'async_form.py': 'contact-form',
  'website.py': 'outbox-website',
  'contact_form.py': 'outbox-form',
  'send_leads.py': 'outbox-worker',
  'leads_in_need.py': 'outbox-attention',
  'with_sqlalchemy.py': 'outbox-sqlalchemy',
};

/** The folder of a website with the programs of the README. */
class Website {
  readonly #bin: string;
  readonly folder: string;

  constructor(bin: string, folder: string) {
    this.#bin = bin;
    this.folder = folder;
    mkdirSync(folder);
    for (const [file, mark] of Object.entries(PROGRAMS)) {
      writeFileSync(join(folder, file), exampleOf('sdk/python/README.md', mark));
    }
  }

  /** Runs one of its programs, or statements; returns the output. */
  async run(program: string, secret = newKeySecret(), url = service.url): Promise<string> {
    const env = { PATH: process.env.PATH, LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret };
    const args = program.endsWith('.py') ? [program] : ['-W', 'error', '-c', program];
    const { stdout } = await execute(join(this.#bin, 'python'), args, { cwd: this.folder, env });
    return stdout.trim();
  }

  /** Starts its worker. */
  work(secret: string) {
    const env = { PATH: process.env.PATH, LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret };
    const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'];
    return watch(spawn(join(this.#bin, 'python'), ['send_leads.py'], { cwd: this.folder, env, stdio }));
  }

  /** The rows of the table, oldest first. */
  rows = () =>
    queryFile(join(this.folder, 'website.db'), 'SELECT state, capture FROM example_com_leads ORDER BY created_at');
}

// @proves leads-23
describeWithTools([PYTHON_TOOL], 'the client for Python', () => {
  const scratch = sharedFolder();
  let bin: string;
  beforeAll(async () => {
    bin = await pythonWithClient(scratch(), 'mypy==2.4.1', 'SQLAlchemy==2.1.9');
  });
  const aWebsite = () => new Website(bin, join(scratch(), randomUUID()));
  const run: Website['run'] = (...args) => aWebsite().run(...args);

  /** A program that runs `body` with a client. */
  const withClient = (body: string): string => `
import asyncio, async_form, lead_intake, os, uuid
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
    const [, id] = /^lead (\S+)$/.exec(await run('first_lead.py', secret)) ?? [];
    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([{ id, displayName: 'Grace Hopper' }]);
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('runs the contact form of its README', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const key = randomUUID();
    const printed = await run(
      withClient(`for key in ("${key}", "${key}", str(uuid.uuid4())):
    print(await async_form.on_contact_form(leads, grace, key))
print(*await async_form.names(leads))`),
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

  // @proves leads-26
  test('the outbox does what its README shows: stores, sends, and lists what needs attention', async () => {
    const website = aWebsite();
    const { secret, studioId } = await service.aStudioWithKey();
    const faults = await website.run(`
import sqlite3, contact_form, website, with_sqlalchemy
from lead_intake import EmailContact, LeadCapture
connection = website.connect()
send = contact_form.on_contact_form
ada = LeadCapture("Ada", EmailContact("nowhere"))
for each in (
    send(connection, "a form", "Grace", "grace@example.org", "Zoë 😀"),
    send(connection, "a form", "Grace", "grace@example.org", "Zoë 😀"),
    send(connection, "another form", "Ada", "nowhere", ""),
    with_sqlalchemy.on_contact_form("another form", ada),
):
    print(*each)
with_sqlalchemy.engine.dispose()
with connection:
    website.outbox.add(connection, ada)
try:
    with connection:
        send(connection, "", "Eve", "eve@example.org", "")
except ValueError:
    connection.close()`);
    expect(faults.split('\n')).toEqual(['contact.value', 'contact.value']);
    expect(website.rows()).toMatchObject([{ state: 'waiting' }, { state: 'waiting' }]);

    const worker = website.work(secret);
    try {
      await vi.waitUntil(() => website.rows().every(({ state }) => state !== 'waiting'), { timeout: 60_000 });
      worker.child.kill('SIGTERM');
      expect(await worker.ended()).toBe(0);
    } finally {
      await worker.kill();
    }
    expect(worker.output()).not.toMatch(/Grace|grace@|nowhere/);
    expect(website.rows()).toEqual([
      { state: 'delivered', capture: null },
      { state: 'refused', capture: expect.stringContaining('nowhere') },
    ]);
    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([{ displayName: 'Grace', note: 'Zoë 😀' }]);
    expect(await service.countLeads(studioId)).toBe(1);
    const [first, ...others] = (await website.run('leads_in_need.py')).split('\n');
    expect(first).toBe('1 leads need a person');
    const why = `^[\\da-f]{8}-[\\da-f]{4}-[\\da-f]{4}-[89ab][\\da-f]{3}-[\\da-f]{12} refused since \\S+ \\S+: 400 integration_invalid_request: .*contact\\.value: .+\\(request .+\\)$`;
    expect(others).toEqual([expect.stringMatching(new RegExp(why))]);

    // A visitor who goes back and corrects the address is not lost, although the first lead exists.
    await website.run(`
import contact_form, website
contact_form.on_contact_form(website.connect(), "a form", "Grace", "grace@example.org", "Zoë 😀")
contact_form.on_contact_form(website.connect(), "a form", "Grace", "grace@example.com", "Zoë 😀")`);
    expect(website.rows().map(({ state }) => state)).toEqual(['delivered', 'refused', 'waiting']);
  });

  const expectAnyConnection = async (website: Website) => {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await website.run(
      `
import os, sqlite3, uuid
from sqlalchemy.orm import Session, scoped_session, sessionmaker
import with_sqlalchemy
from lead_intake import EmailContact, LeadCapture, LeadIntakeClient
from lead_intake.outbox import Outbox

def connect(row_factory=None, **options):
    connection = sqlite3.connect("website.db", **options)
    connection.row_factory = row_factory
    return connection

def as_dict(cursor, row):
    return dict(zip([column[0] for column in cursor.description], row))

engine = with_sqlalchemy.engine
ways = {
    "as it comes": connect,
    "autocommit": lambda: connect(isolation_level=None),
    "rows": lambda: connect(sqlite3.Row),
    "dictionaries": lambda: connect(as_dict),
    "a Connection": engine.connect,
    "autocommit of an engine": engine.execution_options(isolation_level="AUTOCOMMIT").connect,
    "a Session": lambda: Session(engine),
    "a scoped Session": scoped_session(sessionmaker(engine)),
}
with LeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]) as leads:
    for way, connect_so in ways.items():
        outbox = Outbox(connect_so, table="example_com_leads")
        outbox.set_up()
        capture = LeadCapture(way, EmailContact(f"{uuid.uuid4()}@example.org"))
        connection = connect_so()
        key = outbox.add(connection, capture)
        outbox.add(connection, capture, idempotency_key=key)
        connection.commit()
        connection.close()
        with_sqlalchemy.on_contact_form(str(uuid.uuid4()), capture)
        first, second = outbox.deliver(leads), outbox.deliver(leads)
        print(way, first.delivered, first.already_open, second.delivered + second.waiting, sep=", ")
engine.dispose()`,
      secret,
    );
    const ways = printed.split('\n').map((line) => line.split(', '));
    expect(ways.map(([, ...counts]) => counts)).toEqual(Array(8).fill(['1', '1', '0']));
    expect(await service.countLeads(studioId)).toBe(8);
    for (const { capture } of website.rows()) expect(capture).toBe(null);
  };

  // @proves leads-26
  test('the outbox accepts connections of any configuration, and has committed when it returns', () =>
    expectAnyConnection(aWebsite()));

  test.for(PYTHON_OUTBOX_BUGS)('is caught when it is faulty: $name', async ({ patches, says }) => {
    const website = aWebsite();
    // Precedes the installed package on the import path.
    cpSync(join(ROOT, 'sdk/python/src'), website.folder, { recursive: true });
    for (const { file, ...patch } of patches) {
      plantInCopy(website.folder, { ...patch, file: file.replace('sdk/python/src/', '') });
    }
    await expect(expectAnyConnection(website)).rejects.toThrow(says);
  });

  test('passes the strict type check, with all of the client', async () => {
    const website = aWebsite();
    const mypy = (...args: string[]) =>
      execute(join(bin, 'mypy'), ['--strict', '--python-version', '3.10', ...args], { cwd: website.folder });
    await mypy(...Object.keys(PROGRAMS));
    await mypy('-p', 'lead_intake');
  });
});
