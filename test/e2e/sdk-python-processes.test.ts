import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { plantInCopy } from '../planted-bugs/plant-in-copy.ts';
import { PYTHON_POOL_BUGS } from '../planted-bugs/python-client-bugs.ts';
import { describeWithTools } from '../support/examples.ts';
import { ROOT, sharedFolder } from '../support/processes.ts';
import { PYTHON_TOOL, pythonWithClient } from '../support/python.ts';
import { aService } from '../support/service.ts';

// The dependencies are downloaded and installed, which takes a while on a busy machine.
vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

const execute = promisify(execFile);
const service = aService();

/** Prints what the client logs: an attempt that is repeated fails the tests, even if its repetition succeeds. */
const PRELUDE = `
import asyncio, httpx2, json, logging, multiprocessing, os, pickle, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from lead_intake import *
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

/** Programs that use one client in several ways, and the number of its users. Each uses the client before others do, so that its connection is kept alive. */
const USES: Readonly<Record<string, readonly [program: string, users: number]>> = {
  forks: [
    `leads = LeadIntakeClient(url, key)
leads.list_leads()
in_forks(lambda owner: create(leads, owner))
create(leads, "parent")`,
    5,
  ],
  'forks of an async client': [
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
  'event loops, one after the other': [
    `leads = AsyncLeadIntakeClient(url, key)
for number in range(3):
    asyncio.run(create_async(leads, f"loop{number}"))`,
    3,
  ],
};

describeWithTools([PYTHON_TOOL], 'one client for Python', () => {
  const folder = sharedFolder();
  let python: string;
  beforeAll(async () => {
    python = join(await pythonWithClient(folder()), 'python');
  });

  async function run(program: string, secret: string, url = service.url, cwd = folder()): Promise<string> {
    const env = { PATH: process.env.PATH, LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret };
    const { stdout } = await execute(python, ['-c', PRELUDE + program], { cwd, env });
    return stdout.trim();
  }

  async function expectNoMixUp(use: string, at = folder()): Promise<void> {
    const { secret, studioId } = await service.aStudioWithKey();
    const [program = '', users = 0] = USES[use] ?? [];
    expect(await run(program, secret, service.url, at)).toBe('');
    expect(await service.countLeads(studioId)).toBe(users * 12);
  }

  // @proves leads-21
  test.for(Object.keys(USES))('gives no one the lead of another, and repeats nothing: %s', (use) => expectNoMixUp(use));

  test.for(PYTHON_POOL_BUGS)('is caught when it is faulty: $name', async ({ patches, caughtBy, says }) => {
    const copy = join(folder(), caughtBy);
    // Precedes the installed package on the import path.
    cpSync(join(ROOT, 'sdk/python/src'), copy, { recursive: true });
    for (const { file, ...patch } of patches) {
      plantInCopy(copy, { ...patch, file: file.replace('sdk/python/src/', '') });
    }
    await expect(expectNoMixUp(caughtBy, copy)).rejects.toThrow(says);
  });

  test('refuses to send by an HTTP client of the process before a fork, and closes nothing of that process', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await run(
      `
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

  test('passes on the time limit of a job, whatever its class, and nothing else than errors of the transport', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close().closeAllConnections());
    await once(silent, 'listening');
    const printed = await run(
      `
# It logs what is raised within its steps.
logging.getLogger("asyncio").setLevel(logging.CRITICAL)
class JobTimeout(Exception): pass
class TimeLimit(TimeoutError): pass
def limited(kind, work, seconds=0.3):
    def end(*_):
        raise kind("the time of the job is over")
    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        work()
    except (kind, LeadIntakeError) as error:
        print(type(error).__name__)
leads, other = LeadIntakeClient(url, key), AsyncLeadIntakeClient(url, key)
for kind in (JobTimeout, TimeLimit):
    limited(kind, lambda: leads.create_lead(capture("Grace")))
    limited(kind, lambda: asyncio.run(other.create_lead(capture("Grace"))))
class Interrupted(httpx2.AsyncBaseTransport):
    # As a transport takes any TimeoutError within its steps.
    async def handle_async_request(self, request):
        try:
            signal.raise_signal(signal.SIGALRM)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("no time left") from error
interrupted = AsyncLeadIntakeClient(url, key, http_client=httpx2.AsyncClient(transport=Interrupted()))
limited(TimeLimit, lambda: asyncio.run(interrupted.create_lead(capture("Grace"))), 0)
def broken(request):
    raise KeyError("a bug of the website")
hooked = LeadIntakeClient(url, key, http_client=httpx2.Client(event_hooks={"request": [broken]}))
try:
    hooked.create_lead(capture("Grace"))
except KeyError as error:
    print(error)`,
      newKeySecret(),
      `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    );
    expect(printed.split('\n')).toEqual([
      ...['JobTimeout', 'JobTimeout', 'TimeLimit', 'TimeLimit', 'TimeLimit'],
      "'a bug of the website'",
    ]);
  });

  test('has errors that a pool of processes returns whole, of every class', async () => {
    const { secret } = await service.aStudioWithKey();
    const printed = await run(
      `
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

  test('names itself, and keeps what a given HTTP client adds to each request', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer(({ headers }, response) => {
      seen.push(headers);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"leads":[],"nextCursor":null}');
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close().closeAllConnections());
    await once(server, 'listening');
    await run(
      `
given = {"headers": {"User-Agent": "website/3.1", "X-Firewall": "pass", "Authorization": "Basic x"}, "cookies": {"node": "7"}}
async def read(**options):
    await AsyncLeadIntakeClient(url, key, **options).list_leads()
LeadIntakeClient(url, key).list_leads()
LeadIntakeClient(url, key, http_client=httpx2.Client(**given)).list_leads()
asyncio.run(read())
asyncio.run(read(http_client=httpx2.AsyncClient(**given)))`,
      newKeySecret(),
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    );
    const own = { 'user-agent': expect.stringMatching(/^lead-intake-python\/\d/) };
    const kept = { 'user-agent': 'website/3.1', 'x-firewall': 'pass', cookie: 'node=7' };
    expect(seen).toMatchObject([own, kept, own, kept]);
    for (const { authorization } of seen) expect(authorization).toMatch(/^Bearer lik_/);
  });
});
