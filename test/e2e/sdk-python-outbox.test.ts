import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { plantInCopy } from '../planted-bugs/plant-in-copy.ts';
import { PYTHON_OUTBOX_BUGS } from '../planted-bugs/python-client-bugs.ts';
import { describeWithTools, exampleOf } from '../support/examples.ts';
import { ROOT, sharedFolder, watch } from '../support/processes.ts';
import { PYTHON_TOOL, pythonWithClient } from '../support/python.ts';
import { aService } from '../support/service.ts';
import { queryFile } from '../support/website-databases.ts';

// The package and its dependencies are downloaded, built and installed, which takes a while on a busy machine.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

const MYPY = 'mypy==2.4.1';
const SQLALCHEMY = 'SQLAlchemy==2.1.9';

const execute = promisify(execFile);
const service = aService();

/** The programs of the README, by their file names on a website. */
const PROGRAMS = {
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

/** The beginning of a program with an outbox, a connection in autocommit mode, and a client if it needs one. */
const PROLOGUE = `
import os, sqlite3, time
from datetime import datetime
from lead_intake import EmailContact, LeadCapture, LeadIntakeClient
from lead_intake.outbox import Outbox, OutboxError

connect = lambda: sqlite3.connect("website.db", timeout=10, isolation_level=None)

def as_bytes():
    connection = connect()
    connection.text_factory = bytes
    return connection

def client(**options):
    return LeadIntakeClient(os.environ["LEAD_INTAKE_URL"], os.environ["LEAD_INTAKE_KEY"], **options)

def add(name):
    return outbox.add(connection, LeadCapture(name, EmailContact(f"{time.time_ns()}@example.org")))

outbox = Outbox(connect, table="example_com_leads")
outbox.set_up()
connection = connect()`;

/** Expectations of the outbox for Python beyond those of all outboxes (`test/outbox`). Each runs on a separate website. */
const EXPECTATIONS: Readonly<Record<string, (website: Website) => Promise<void>>> = {
  async 'does what its README shows: stores, sends, and lists what needs attention'(website) {
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
  },

  async 'derives one key from a typed lead and from a mapping, and none from an empty form key'(website) {
    const printed = await website.run(`
from datetime import datetime
from lead_intake import EmailContact, LeadCapture
from lead_intake.outbox import key_for

now = datetime.now()
typed = LeadCapture("Ada", EmailContact("ada@example.org"), note=" ", source_id="")
mapping = {"contact": {"value": "ada@example.org", "type": "email"}, "displayName": "Ada"}
print(key_for("page", typed, submitted_at=now) == key_for("page", mapping, submitted_at=now))
print(typed.to_json().keys())
try:
    key_for("", typed)
except ValueError as error:
    print(error)`);
    expect(printed.split('\n')).toEqual([
      'True',
      "dict_keys(['displayName', 'contact'])",
      expect.stringMatching(/must not be empty/),
    ]);
  },

  async 'continues after an unexpected error, and raises it at the end'(website) {
    const printed = await website.run(`${PROLOGUE}
for name in ("Ada", "Grace"):
    add(name)
leads = client()
leads.close()
try:
    outbox.deliver(leads)
except OutboxError as error:
    print(error, type(error.__cause__).__name__, sep=", ")
print(*connection.execute("SELECT state, attempts, reason FROM example_com_leads"))
`);
    const [error, rows] = printed.split('\n');
    expect(error).toBe('sending a lead has raised RuntimeError: it keeps waiting, RuntimeError');
    expect(rows).toBe("('waiting', 1, 'RuntimeError') ('waiting', 1, 'RuntimeError')");
  },

  async 'lists rows whatever they contain'(website) {
    const printed = await website.run(`${PROLOGUE}
for created_at in (10**18, -10**18, time.time_ns() // 1_000_000 + 2 * 86_400_000):
    key = add(str(created_at))
    connection.execute("UPDATE example_com_leads SET created_at = ? WHERE idempotency_key = ?", (created_at, key))
    connection.execute("UPDATE example_com_leads SET capture = '{}' WHERE idempotency_key = ?", (key,))
print(*(entry.created_at.year - datetime.now().year for entry in outbox.needs_attention().entries if entry.created_at.year not in (1, 9999)))
print(outbox.needs_attention().count)
odd = "AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA"
connection.execute("UPDATE example_com_leads SET idempotency_key = ? WHERE idempotency_key = ?", (odd, key))
outbox.retry(odd)
outbox.discard(odd)
connection.close()
try:
    Outbox(as_bytes, table="example_com_leads").needs_attention()
except OutboxError as error:
    print(error)`);
    const [years, count, error] = printed.split('\n');
    expect(years).toMatch(/^[01]$/);
    expect(count).toBe('3');
    expect(error).toMatch(/^The connection returns the key of a lead as bytes, not as str/);
  },

  async 'accepts connections of any configuration, and has committed when it returns'(website) {
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
  },

  async 'ends a pass at the time limit of a job, wherever it comes'(website) {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await website.run(
      `${PROLOGUE}
import signal

class OverTime(Exception): ...

def end(number, frame):
    raise OverTime

signal.signal(signal.SIGALRM, end)
for name in ("Ada", "Grace"):
    add(name)
with client() as leads:
    for on_settled in (lambda lead: signal.raise_signal(signal.SIGALRM), None):
        if on_settled is None:
            leads.create_lead = lambda *args, **options: signal.raise_signal(signal.SIGALRM)
        try:
            outbox.deliver(leads, on_settled=on_settled)
        except OverTime as error:
            print("over")
print(*connection.execute("SELECT state, attempts, reason FROM example_com_leads"))
`,
      secret,
    );
    expect(printed.split('\n')).toEqual(['over', 'over', "('waiting', 1, None) ('waiting', 1, None)"]);
    expect(await service.countLeads(studioId)).toBe(1);
  },

  async 'refuses invalid calls before anything is written'(website) {
    const printed = await website.run(`
import sqlite3, uuid
from lead_intake import EmailContact, LeadCapture
from lead_intake.outbox import Outbox, OutboxError

class OfAsyncio:
    async def commit(self): ...

connect = lambda: sqlite3.connect("website.db")
outbox = Outbox(connect, table="example_com_leads")
outbox.set_up()
connection = connect()
ada, eve = (LeadCapture(name, EmailContact("a@example.org")) for name in ("Ada", "Eve"))
key = outbox.add(connection, ada)
for refused in (
    lambda: Outbox(connect, table="leads; DROP TABLE leads"),
    lambda: Outbox(connect, table="a" * 64),
    lambda: Outbox(connect, keep_settled_days=-1),
    lambda: outbox.add(connection, LeadCapture("\\ud800", EmailContact("a@example.org"))),
    lambda: outbox.add(connection, ["Ada"]),
    lambda: outbox.add(connection, {"note": float("nan")}),
    lambda: outbox.add(connection, {"note": "x" * 65_536}),
    lambda: outbox.add(connection, ada, idempotency_key="5f0f9b1c6c1e4c559a5e3d2b7f1c8a10"),
    lambda: outbox.add(connection, ada, idempotency_key="aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"),
    lambda: outbox.add(connection, eve, idempotency_key=key.upper()),
    lambda: outbox.add(OfAsyncio(), ada),
    lambda: outbox.add(object(), ada),
    lambda: outbox.retry(str(uuid.uuid4())),
):
    try:
        refused()
    except (ValueError, TypeError, OutboxError) as error:
        print(type(error).__name__, str(error).replace(key, "KEY")[:40], sep=": ")
connection.commit()
connection.close()`);
    expect(printed.split('\n')).toEqual([
      'ValueError: The name of the table must have letters,',
      'ValueError: The name of the table must have letters,',
      'ValueError: keep_settled_days must be a number of da',
      'ValueError: The data of the lead has text that is no',
      'TypeError: The data of a lead must be a LeadCapture',
      'ValueError: Out of range float values are not JSON c',
      'ValueError: The data of a lead must not be longer th',
      'ValueError: An idempotency key must be a UUID with h',
      'ValueError: An idempotency key must be a UUID with h',
      'OutboxError: The key KEY has been stored with other d',
      'TypeError: The outbox does not support asyncio conn',
      'TypeError: The outbox does not support connections ',
      expect.stringMatching(/^OutboxError: There is no lead with the key /),
    ]);
    expect(website.rows()).toHaveLength(1);
  },
};

// @proves leads-26
describeWithTools([PYTHON_TOOL], 'the outbox for Python', () => {
  const scratch = sharedFolder();
  let bin: string;
  beforeAll(async () => {
    bin = await pythonWithClient(scratch(), MYPY, SQLALCHEMY);
  });
  const aWebsite = () => new Website(bin, join(scratch(), randomUUID()));

  test.for(Object.entries(EXPECTATIONS))('%s', ([, expectation]) => expectation(aWebsite()));

  test.for(PYTHON_OUTBOX_BUGS)('is caught when it is faulty: $name', async ({ patches, caughtBy, says }) => {
    const website = aWebsite();
    // Precedes the installed package on the import path.
    cpSync(join(ROOT, 'sdk/python/src'), website.folder, { recursive: true });
    for (const { file, ...patch } of patches) {
      plantInCopy(website.folder, { ...patch, file: file.replace('sdk/python/src/', '') });
    }
    await expect(EXPECTATIONS[caughtBy]?.(website)).rejects.toThrow(says);
  });

  test('passes the strict type check, with all of the client', async () => {
    const website = aWebsite();
    const mypy = (...args: string[]) =>
      execute(join(bin, 'mypy'), ['--strict', '--python-version', '3.10', ...args], { cwd: website.folder });
    await mypy(...Object.keys(PROGRAMS));
    await mypy('-p', 'lead_intake');
  });
});
