import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { describeWithTools, findExample } from '../../test/tools/commands.ts';
import { ROOT, sharedFolder, watch } from '../../test/tools/processes.ts';
import { aServedService } from '../../test/tools/served-service.ts';
import { freePort } from '../../test/tools/servers.ts';
import { startProxy } from '../../test/tools/tcp-proxy.ts';
import { plantInCopy } from './planted-bugs/plant-in-copy.ts';
import { PYTHON_OUTBOX_BUG, PYTHON_POOL_BUG } from './planted-bugs/python-bugs.ts';
import type { ClientPatch } from './planted-bugs/typescript-bugs.ts';
import { unknownKey } from './support/key-secret.ts';
import { codeSamplesIn, DOCUMENTED_TYPES } from './support/openapi.ts';
import { expectPage } from './support/outbox-page.ts';
import { PYTHON_TOOL, pythonForTests } from './support/python.ts';
import { queryFile } from './support/website-databases.ts';

const execute = promisify(execFile);
const service = aServedService();

/** The programs of the README, by their file names on a website. */
const PROGRAMS = {
  'first_lead.py': 'first-lead',
  'async_form.py': 'contact-form',
  'website.py': 'outbox-website',
  'contact_form.py': 'outbox-form',
  'send_leads.py': 'outbox-worker',
  'leads_in_need.py': 'outbox-attention',
  'send_now.py': 'outbox-now',
  'with_sqlalchemy.py': 'outbox-sqlalchemy',
  'office.py': 'outbox-page',
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
      writeFileSync(join(folder, file), findExample('sdk/python/README.md', mark));
    }
  }

  /** Runs one of its programs, or statements, and returns the output. */
  async run(program: string, secret = unknownKey(), url = service.url): Promise<string> {
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

  /** Returns the rows of the table, oldest first. */
  rows = () =>
    queryFile(join(this.folder, 'website.db'), 'SELECT state, capture FROM example_com_leads ORDER BY created_at');
}

/** Prints the client's log, so that a retry fails the tests even if it succeeds. */
const PRELUDE = `
import asyncio, httpx2, json, logging, multiprocessing, os, pickle, signal, socket, sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
from lead_intake import *
# Python warns about a fork while threads run.
warnings.resetwarnings()
logging.basicConfig(stream=sys.stdout)
logging.getLogger("lead_intake").setLevel(logging.INFO)
url, key = os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]
def capture(name):
    return LeadCapture(name, EmailContact(f"{name}@example.org"), note=f"From {name}.")
def create(leads, owner):
    for number in range(12):
        name = f"{owner}-{number}"
        created = leads.create_lead(capture(name))
        assert not created.replayed and leads.get_lead(created.lead.id).note == f"From {name}."
async def create_async(leads, owner):
    for number in range(12):
        name = f"{owner}-{number}"
        created = await leads.create_lead(capture(name))
        assert not created.replayed and (await leads.get_lead(created.lead.id)).note == f"From {name}."
def in_forks(work, count=4):
    children = []
    for owner in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(f"fork{owner}")
                status = 0
            finally:
                sys.stdout.flush()
                os._exit(status)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
`;

/** Programs whose users share a client, with the number of users. The main process uses it first, so that a connection is open. */
const USES: Readonly<Record<string, readonly [program: string, users: number]>> = {
  forks: [
    `leads = LeadIntakeClient(url, key)
leads.list_leads()
in_forks(lambda owner: create(leads, owner))
create(leads, "parent")`,
    5,
  ],
  'forks with an async client': [
    `leads = AsyncLeadIntakeClient(url, key)
loop = asyncio.new_event_loop()
loop.run_until_complete(leads.list_leads())
in_forks(lambda owner: loop.run_until_complete(create_async(leads, owner)))
loop.run_until_complete(create_async(leads, "parent"))`,
    5,
  ],
  threads: [
    `with LeadIntakeClient(url, key) as leads:
    leads.list_leads()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda owner: create(leads, f"thread{owner}"), range(4)))`,
    4,
  ],
  'consecutive event loops': [
    `leads = AsyncLeadIntakeClient(url, key)
for number in range(3):
    asyncio.run(create_async(leads, f"loop{number}"))`,
    3,
  ],
};

/** Prints the packages that the modules of a folder import when they are loaded, without Python's own. */
const IMPORTS = `
import ast, pathlib, sys
files = pathlib.Path(sys.argv[1]).rglob("*.py")
nodes = [node for file in files for node in ast.parse(file.read_text()).body]
names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
print(*sorted({name.split(".")[0] for name in names} - sys.stdlib_module_names))`;

// @proves leads-23
describeWithTools([PYTHON_TOOL], 'the client for Python', () => {
  const scratch = sharedFolder();
  let bin: string;
  beforeAll(async () => {
    bin = await pythonForTests();
  });
  const aWebsite = () => new Website(bin, join(scratch(), randomUUID()));
  const run: Website['run'] = (...args) => aWebsite().run(...args);

  /** Creates a website with a faulty copy of the client, which precedes the installed one on the import path. */
  function aFaultyWebsite(patches: readonly ClientPatch[]): Website {
    const website = aWebsite();
    cpSync(join(ROOT, 'sdk/python/src'), website.folder, { recursive: true });
    for (const { file, ...patch } of patches) {
      plantInCopy(website.folder, { ...patch, file: file.replace('sdk/python/src/', '') });
    }
    return website;
  }

  /** Returns a program that runs `body` with a client. */
  const withClient = (body: string): string => `
import asyncio, async_form, lead_intake, os, uuid
from lead_intake import EmailContact, LeadCapture
grace = LeadCapture("Grace", EmailContact("grace@example.org"), note="Asks for a trial.")
async def main():
    async with lead_intake.AsyncLeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]) as leads:
${body.replaceAll(/^/gm, '        ')}
asyncio.run(main())`;

  // @proves clients-1
  test('the Python client runs the sample of each operation in the API reference', async () => {
    const { secret } = await service.aStudioWithKey();
    const { create, read, list } = codeSamplesIn('python', service.url);
    const id = await run(create, secret);
    expect(await run(read(id), secret)).toBe('new');
    expect(await run(list, secret)).toBe('Grace Hopper');
  });

  test('the installed Python client runs the README examples: the first lead, and a contact form', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    expect(await run('first_lead.py', secret)).toMatch(/^lead \S+$/);
    const key = randomUUID();
    const printed = await run(
      withClient(`for key in ("${key}", "${key}", str(uuid.uuid4())):
    print(await async_form.on_contact_form(leads, grace, key, lambda note: print("kept:", note)))
print(*await async_form.names(leads))`),
      secret,
    );
    const [first = '', ...others] = printed.split('\n');
    const [, id] = /^lead (\S+)$/.exec(first) ?? [];
    expect(others).toEqual([`lead ${id}`, 'kept: Asks for a trial.', `open already: ${id}`, 'Grace Grace Hopper']);
    expect(await service.countLeads(studioId)).toBe(2);
  });

  test('the Python client imports only the packages that it declares', async () => {
    const printed = await execute(join(bin, 'python'), ['-c', IMPORTS, join(ROOT, 'sdk/python/src/lead_intake')]);
    expect(printed.stdout.trim()).toBe('anyio httpx2');
  });

  // @proves clients-9
  test('a cancelled task of the Python client tells whether the lead may have been written', async () => {
    const { secret } = await service.aStudioWithKey();
    const proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    proxy.silence();
    const printed = await run(
      withClient(`async def cancelled(leads, failed=None):
    task = asyncio.create_task(leads.create_lead(grace))
    await (asyncio.sleep(0.2) if failed is None else failed.wait())
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as error:
        return lead_intake.outcome_of(error).written
async def too_late(leads):
    try:
        await asyncio.wait_for(leads.create_lead(grace), 0.2)
    except asyncio.TimeoutError as error:
        return lead_intake.outcome_of(error).written
failed = asyncio.Event()
tell = lambda report: failed.set()
gone = lead_intake.AsyncLeadIntakeClient("http://127.0.0.1:1", "${unknownKey()}", on_attempt=tell)
print(await cancelled(leads), await cancelled(gone, failed), await too_late(leads))
await gone.aclose()`),
      secret,
      `http://127.0.0.1:${proxy.port}`,
    ).finally(() => proxy.stop());
    expect(printed).toBe('unknown no unknown');
  });

  test('an attempt that the Python client gives up ends, and sends nothing afterwards', async () => {
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

limits = {"deadline_seconds": 4, "attempt_timeout_seconds": 3}
with LeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"], **limits) as leads:
    give_up(leads)
    wait_for_ends()
    socket.getaddrinfo = look_up_late
    give_up(leads)
    may_look_up.set()
    wait_for_ends()`,
      unknownKey(),
      `http://127.0.0.1:${(dripping.address() as AddressInfo).port}`,
    ).finally(() => dripping.close());
    expect(printed.split('\n')).toEqual(Array(2).fill('unknown no answer within 3.0 s'));
    expect(requests).toBe(1);
  });

  test('an unexpected error of a Python HTTP client or listener blocks no other lead', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await run(
      `
import asyncio, os, sqlite3, sys, httpx2, logging
from lead_intake import AsyncLeadIntakeClient, EmailContact, LeadCapture, LeadIntakeClient
from lead_intake.outbox import Outbox, OutboxError

logging.basicConfig(stream=sys.stdout, format="%(message)s")
outbox = Outbox(lambda: sqlite3.connect("own-way.db"), table="leads")
outbox.set_up()
settings = os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]
failing = [LookupError("a proxy of its own")]

class Transport(httpx2.HTTPTransport):
    def handle_request(self, request):
        if failing:
            raise failing.pop()
        return super().handle_request(request)

def listen(report):
    raise ValueError("no metrics")

with sqlite3.connect("own-way.db") as website:
    for name in ("Ada", "Grace"):
        outbox.add(website, LeadCapture(name, EmailContact(f"{name}@example.org")))
with LeadIntakeClient(*settings, http_client=httpx2.Client(transport=Transport()), on_attempt=listen) as leads:
    try:
        outbox.deliver(leads)
    except OutboxError as error:
        print(error)
print(website.execute("SELECT state, reason FROM leads ORDER BY state").fetchall())

async def left():
    async with AsyncLeadIntakeClient(*settings) as leads:
        print(leads.quota())
        await leads.list_leads()
        print(leads.quota().limit > leads.quota().remaining)

asyncio.run(left())`,
      secret,
    );
    expect(printed.split('\n')).toEqual([
      'on_attempt has raised ValueError: no metrics',
      'sending a lead has raised LookupError: the lead keeps waiting',
      "[('delivered', None), ('waiting', 'LookupError')]",
      'None',
      'True',
    ]);
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('the Python client names a wrong argument before it attempts to send a lead', async () => {
    const printed = await run(
      `
import asyncio, os, sqlite3
from lead_intake import AsyncLeadIntakeClient, EmailContact, LeadCapture, LeadIntakeClient
from lead_intake.outbox import Outbox

outbox = Outbox(lambda: sqlite3.connect("wrong-place.db"), table="leads")
outbox.set_up()
with sqlite3.connect("wrong-place.db") as website:
    outbox.add(website, LeadCapture("Grace", EmailContact("grace@example.org")))
settings = os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]
for wrong in (
    lambda: outbox.deliver(AsyncLeadIntakeClient(*settings)),
    lambda: outbox.reconcile(website),
    lambda: LeadIntakeClient(*settings).create_lead({}),
    lambda: LeadCapture("Grace", "grace@example.org"),
):
    try:
        wrong()
    except TypeError as error:
        print(error)
print(website.execute("SELECT attempts FROM leads").fetchall())`,
      unknownKey(),
      'http://localhost:1',
    );
    expect(printed.split('\n')).toEqual([
      'The outbox takes a LeadIntakeClient, not AsyncLeadIntakeClient.',
      'The outbox takes a LeadIntakeClient, not Connection.',
      expect.stringMatching(/^create_lead takes a LeadCapture, such as /),
      expect.stringMatching(/^contact must be an EmailContact or a PhoneContact, such as /),
      '[(0,)]',
    ]);
  });

  test('the Python client has every field and value of the OpenAPI document', async () => {
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

  // @proves leads-24 clients-14
  test('the Python outbox stores and sends leads, and lists problems, as its README shows', async () => {
    const website = aWebsite();
    const { secret, studioId } = await service.aStudioWithKey();
    const faults = await website.run(`
import os, contact_form, website, with_sqlalchemy
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
# A double click on a page without a hidden field.
for key in (None, ""):
    send(connection, key, "Eve", "eve@example.org", "")
connection.close()
# Without a key no client can be made, but nothing is raised.
import send_now
del os.environ["LEAD_INTAKE_KEY"]
send_now.send_now()`);
    expect(faults.split('\n')).toEqual(['contact.value', 'contact.value']);
    expect(website.rows()).toMatchObject([{ state: 'waiting' }, { state: 'waiting' }, { state: 'waiting' }]);
    await website.run('import send_now; send_now.send_now()', secret);
    expect(website.rows()).toMatchObject([{ state: 'delivered' }, { state: 'waiting' }, { state: 'waiting' }]);

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
      { state: 'delivered', capture: null },
    ]);
    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([{ displayName: 'Eve' }, { displayName: 'Grace', note: 'Zoë 😀' }]);
    expect(await service.countLeads(studioId)).toBe(2);
    const [first, ...others] = (await website.run('leads_in_need.py')).split('\n');
    expect(first).toBe('1 leads need a person');
    const why = `^[\\da-f]{8}-[\\da-f]{4}-[\\da-f]{4}-[89ab][\\da-f]{3}-[\\da-f]{12} refused since \\S+ \\S+: 400 integration_invalid_request: .*contact\\.value: .+\\(request .+\\)$`;
    expect(others).toEqual([expect.stringMatching(new RegExp(why))]);

    // A visitor who goes back and corrects the address is stored as well, although the first lead exists.
    await website.run(`
import contact_form, website
contact_form.on_contact_form(website.connect(), "a form", "Grace", "grace@example.org", "Zoë 😀")
contact_form.on_contact_form(website.connect(), "a form", "Grace", "grace@example.com", "Zoë 😀")`);
    expect(website.rows().map(({ state }) => state)).toEqual(['delivered', 'refused', 'delivered', 'waiting']);
  });

  // @proves page-4
  test('the page does what its README shows', async ({ onTestFinished }) => {
    const website = aWebsite();
    const { secret } = await service.aStudioWithKey();
    await website.run(
      `
import os, website
from lead_intake import LeadIntakeClient
connection = website.connect()
with connection:
    website.outbox.add(connection, {"displayName": "Ada", "contact": {"type": "email", "value": "nowhere"}})
connection.close()
with LeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"]) as leads:
    website.outbox.deliver(leads)`,
      secret,
    );
    const start = (port: number, password: string) => {
      const args = ['-m', 'flask', '--app', 'office', 'run', '--port', `${port}`];
      const own = { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_READ_KEY: secret, OFFICE_PASSWORD: password };
      const env = { PATH: process.env.PATH, ...own };
      const server = watch(
        spawn(join(bin, 'python'), args, { cwd: website.folder, env, stdio: ['ignore', 'pipe', 'pipe'] }),
      );
      onTestFinished(() => server.kill());
      return server;
    };
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/office/leads`;
    const none = start(port, '');
    const refused = await vi.waitFor(() => fetch(url), { timeout: 60_000 });
    expect([refused.status, await refused.text()]).toEqual([503, 'OFFICE_PASSWORD must be set.']);
    none.kill();
    await none.ended();
    const server = start(port, 'of the office: ä');
    await vi.waitFor(() => fetch(url), { timeout: 60_000 });
    await expectPage({ url, password: 'of the office: ä', isOfClient: true, rows: () => website.rows() });
    expect(server.output()).not.toMatch(/nowhere|Ada|Error/);
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

  // @proves leads-24
  test('the Python outbox accepts any configuration of a connection, and commits before it returns', () =>
    expectAnyConnection(aWebsite()));

  test('the suite catches a Python outbox that does not commit', async () => {
    await expect(expectAnyConnection(aFaultyWebsite(PYTHON_OUTBOX_BUG))).rejects.toThrow('to deeply equal');
  });

  test('the Python client and the README programs pass the strict check of mypy', async () => {
    const website = aWebsite();
    const mypy = (...args: string[]) =>
      execute(join(bin, 'mypy'), ['--strict', '--python-version', '3.10', ...args], { cwd: website.folder });
    await mypy(...Object.keys(PROGRAMS));
    await mypy('-p', 'lead_intake');
  });

  async function expectNoMixUp(use: string, website = aWebsite()): Promise<void> {
    const { secret, studioId } = await service.aStudioWithKey();
    const [program = '', users = 0] = USES[use] ?? [];
    expect(await website.run(PRELUDE + program, secret)).toBe('');
    expect(await service.countLeads(studioId)).toBe(users * 12);
  }

  // @proves leads-16
  test.for(Object.keys(USES))('%s can share a Python client without mix-ups or retries', (use) => expectNoMixUp(use));

  test("the suite catches a forked process that keeps its parent's connections", async () => {
    await expect(expectNoMixUp('forks', aFaultyWebsite(PYTHON_POOL_BUG))).rejects.toThrow();
  });

  test("a forked process cannot send by its parent's HTTP client, nor close its connections", async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await run(
      `${PRELUDE}
http = httpx2.Client()
given, leads = LeadIntakeClient(url, key, http_client=http), LeadIntakeClient(url, key)
given.list_leads()
leads.list_leads()
def fork(_):
    try:
        given.create_lead(capture("Grace"))
    except RuntimeError as error:
        print(error)
    leads.close()
    given.close()
in_forks(fork, 1)
create(leads, "parent")
create(given, "given")
leads.close()
try:
    leads.list_leads()
except RuntimeError as error:
    print(error)`,
      secret,
    );
    expect(printed.split('\n')).toEqual([
      'Create the client and its http_client after the fork, in the process that uses them.',
      'The client is closed.',
    ]);
    expect(await service.countLeads(studioId)).toBe(24);
  });

  test("the Python client wraps only transport errors, and passes on a job's time limit", async () => {
    const printed = await run(
      `${PRELUDE}
# asyncio logs errors that are raised within its steps.
logging.getLogger("asyncio").setLevel(logging.CRITICAL)
class JobTimeout(Exception): pass
class TimeLimit(TimeoutError): pass
# Ends the time once a request has come, because anyio wraps errors that are raised while it connects.
silent = socket.create_server(("127.0.0.1", 0))
def take_requests():
    taken = []
    while True:
        taken.append(silent.accept()[0])
        taken[-1].recv(1)
        os.kill(os.getpid(), signal.SIGALRM)
threading.Thread(target=take_requests, daemon=True).start()
url = f"http://127.0.0.1:{silent.getsockname()[1]}"
def limited(kind, work):
    def end(*_):
        raise kind("the time of the job is over")
    signal.signal(signal.SIGALRM, end)
    try:
        work()
    except (kind, LeadIntakeError) as error:
        print(type(error).__name__)
leads, other = LeadIntakeClient(url, key), AsyncLeadIntakeClient(url, key)
for kind in (JobTimeout, TimeLimit):
    limited(kind, lambda: leads.create_lead(capture("Grace")))
    limited(kind, lambda: asyncio.run(other.create_lead(capture("Grace"))))
class Interrupted(httpx2.AsyncBaseTransport):
    # Converts any TimeoutError within its steps, as a transport does.
    async def handle_async_request(self, request):
        try:
            signal.raise_signal(signal.SIGALRM)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("no time left") from error
interrupted = AsyncLeadIntakeClient(url, key, http_client=httpx2.AsyncClient(transport=Interrupted()))
limited(TimeLimit, lambda: asyncio.run(interrupted.create_lead(capture("Grace"))))
def broken(request):
    raise KeyError("a bug of the website")
hooked = LeadIntakeClient(url, key, http_client=httpx2.Client(event_hooks={"request": [broken]}))
try:
    hooked.create_lead(capture("Grace"))
except KeyError as error:
    print(error)`,
      unknownKey(),
    );
    expect(printed.split('\n')).toEqual([
      ...['JobTimeout', 'JobTimeout', 'TimeLimit', 'TimeLimit', 'TimeLimit'],
      "'a bug of the website'",
    ]);
  });

  test('a pool of processes returns every error class of the Python client intact', async () => {
    const { secret } = await service.aStudioWithKey();
    const printed = await run(
      `${PRELUDE}
import inspect, lead_intake, lead_intake.outbox
def fail(data):
    LeadIntakeClient(url, key).create_lead(data)
def whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
values = {
    "written": "unknown", "status": 400, "fields": {"contact.value": ["is required"]}, "attempts": 3, "retry_after_seconds": 2,
}
for module in (lead_intake, lead_intake.outbox):
    for name, kind in inspect.getmembers(module, inspect.isclass):
        if issubclass(kind, LeadIntakeError):
            whole(kind(**{each: values.get(each, each) for each in inspect.signature(kind).parameters}))
            print(name, end=" ")
        elif issubclass(kind, Exception):
            whole(kind("a message"))
            print(name, end=" ")
print()
leads, again = LeadIntakeClient(url, key), capture("Grace")
leads.create_lead(again)
with multiprocessing.get_context("fork").Pool(1) as pool:
    try:
        pool.apply(fail, (again,))
    except LeadAlreadyOpenError as error:
        print(error.existing_lead_id == leads.list_leads().leads[0].id)`,
      secret,
    );
    const [classes, isTheSame] = printed.split('\n');
    expect(classes?.trim().split(' ').toSorted()).toEqual([
      'IdempotencyConflictError',
      'LeadAlreadyOpenError',
      'LeadIntakeError',
      'NoAnswerError',
      'OutboxError',
      'ProblemError',
    ]);
    expect(isTheSame).toBe('True');
  });

  test("the Python client names itself, and keeps a given HTTP client's headers and cookies", async () => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer(({ headers }, response) => {
      seen.push(headers);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"leads":[],"nextCursor":null}');
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close().closeAllConnections());
    await once(server, 'listening');
    await run(
      `${PRELUDE}
given = {"headers": {"User-Agent": "website/3.1", "X-Firewall": "pass", "Authorization": "Basic x"}, "cookies": {"node": "7"}}
async def read(**options):
    await AsyncLeadIntakeClient(url, key, **options).list_leads()
LeadIntakeClient(url, key).list_leads()
LeadIntakeClient(url, key, http_client=httpx2.Client(**given)).list_leads()
asyncio.run(read())
asyncio.run(read(http_client=httpx2.AsyncClient(**given)))`,
      unknownKey(),
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    );
    const own = { 'user-agent': expect.stringMatching(/^lead-intake-python\/\d/) };
    const kept = { 'user-agent': 'website/3.1', 'x-firewall': 'pass', cookie: 'node=7' };
    expect(seen).toMatchObject([own, kept, own, kept]);
    for (const { authorization } of seen) expect(authorization).toMatch(/^Bearer lik_/);
  });
});
