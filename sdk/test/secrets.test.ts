import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Canaries } from '../../test/tools/canaries.ts';
import { describeWithTools } from '../../test/tools/commands.ts';
import { ROOT, sharedFolder } from '../../test/tools/processes.ts';
import { aServedService } from '../../test/tools/served-service.ts';
import * as sdk from '../index.ts';
import { createOutbox, OutboxError } from '../outbox/index.ts';
import { GUZZLE } from './support/php-website.ts';
import { PYTHON_TOOL, pythonForTests } from './support/python.ts';

const service = aServedService();

/** An intermediary that responds with the request that it received. */
const echo = createServer(async (request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).write(JSON.stringify(request.headers));
  for await (const piece of request) response.write(piece);
  response.end();
});
beforeAll(() => new Promise<void>((resolve) => void echo.listen(0, '127.0.0.1', resolve)));
afterAll(() => void echo.close().closeAllConnections());

const NAME = 'Zacharias Quux-Marked';
const EMAIL = 'marked.person@canary.example';
const NOTE = 'A marked note of the visitor';

/** Creates a studio, and canaries for its key and for a person: a program's output must not contain them. */
async function aMarkedStudio() {
  const { secret, studioId } = await service.aStudioWithKey();
  const canaries = new Canaries();
  canaries.addKey(secret);
  for (const text of [NAME, EMAIL, NOTE]) canaries.add(text, text);
  const env = {
    PATH: process.env.PATH,
    LEAD_INTAKE_KEY: secret,
    LEAD_INTAKE_URL: service.url,
    ECHO_URL: `http://127.0.0.1:${(echo.address() as AddressInfo).port}`,
    MARKED_NAME: NAME,
    MARKED_EMAIL: EMAIL,
    MARKED_NOTE: NOTE,
  };
  return { env, canaries, studioId };
}

function readOutput(command: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd = ROOT): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', reject).on('close', () => resolve(output));
  });
}

/** Returns the sections of the output, each under a line `# …`, that contain canaries, with some of those lines. */
function leaksIn(printed: string, canaries: Canaries): readonly string[] {
  return printed.split(/^# /m).flatMap((shown) => {
    const [title = ''] = shown.split('\n');
    const lines = shown.split('\n').filter((line) => canaries.in(line).length > 0);
    return canaries.in(shown).length > 0 ? [`${title}: ${lines.slice(0, 3).join(' | ')}`] : [];
  });
}

describeWithTools([`php -r 'curl_init(); new PDO("sqlite::memory:"); require "${GUZZLE}";'`], 'in PHP', () => {
  // @proves secrets-6 others-15
  test('no PHP exception or dump reveals the key or the visitor, even with arguments in traces', async () => {
    const { env, canaries } = await aMarkedStudio();
    const program = String.raw`
require '${GUZZLE}';
spl_autoload_register(fn ($class) => str_starts_with($class, 'LeadIntake') && require 'sdk/php/src/' . strtr(substr($class, 11), '\\', '/') . '.php');
use LeadIntake\{Contact, LeadCapture, LeadIntakeClient};
use LeadIntake\Outbox\Outbox;
use LeadIntake\Transport\Psr18Transport;

function show(mixed $value): void {
  print_r($value);
  var_dump($value);
  try { var_export($value); } catch (Throwable) {}
  print_r((array) $value);
  try { echo serialize($value); } catch (Throwable) {}
  echo json_encode($value, JSON_PARTIAL_OUTPUT_ON_ERROR);
  if ($value instanceof Throwable) echo $value, $value->getTraceAsString();
}
[$url, $key, $echo] = [getenv('LEAD_INTAKE_URL'), getenv('LEAD_INTAKE_KEY'), getenv('ECHO_URL')];
// Gives the service more time, because the machine may be busy.
$seconds = fn (string $at) => $at === $url ? 60.0 : 1.0;
$client = fn (string $at, ...$more) => new LeadIntakeClient($at, $key, $seconds($at), $seconds($at), ...$more);
$factory = new GuzzleHttp\Psr7\HttpFactory();
$guzzle = new Psr18Transport(new GuzzleHttp\Client(['timeout' => 1, 'allow_redirects' => false]), $factory, $factory);
$lead = fn (?string $name = null) => new LeadCapture(
  $name ?? getenv('MARKED_NAME'), Contact::email(getenv('MARKED_EMAIL')), note: getenv('MARKED_NOTE'),
);
$used = $client($url)->createLead($lead())->idempotencyKey;
$database = new PDO('sqlite::memory:');
$outbox = new Outbox($database, 'leads');
$lost = new Outbox($database, 'lost');
$outbox->setUp();
$stored = $outbox->add($lead());
$settled = function (#[SensitiveParameter] $entry) use ($database) { $database->exec('DROP TABLE leads'); };
$of_service = $client($url);
$by_guzzle = $client($echo, transport: $guzzle);
$scenarios = [
  fn () => new LeadIntakeClient($url, $key . 'x'),
  fn () => new LeadIntakeClient($url, substr($key, 0, -1) . "\n"),
  fn () => new LeadIntakeClient("https://marked:$key@api.example.com", $key),
  fn () => $client($url)->createLead($lead("\xff" . getenv('MARKED_NAME'))),
  fn () => $of_service->createLead($lead('')),
  fn () => $client($url)->createLead($lead()),
  fn () => $client($url)->createLead($lead('Other'), $used),
  fn () => $client('http://127.0.0.1:1')->createLead($lead()),
  fn () => $client($echo)->createLead($lead()),
  fn () => $by_guzzle->createLead($lead()),
  fn () => $client('http://127.0.0.1:1', transport: $guzzle)->createLead($lead()),
  fn () => new LeadCapture(getenv('MARKED_NAME'), getenv('MARKED_EMAIL'), note: getenv('MARKED_NOTE')),
  fn () => $lost->add($lead()),
  fn () => $outbox->add($lead('Other'), $stored),
  fn () => $outbox->add($lead("\xff" . getenv('MARKED_NAME'))),
  fn () => $outbox->add($lead(str_repeat(getenv('MARKED_NAME'), 9000))),
  fn () => Outbox::keyFor('x', $lead("\xff" . getenv('MARKED_NAME'))),
  fn () => $outbox->deliver($client($url), onSettled: fn (#[SensitiveParameter] $entry) => throw new DomainException('of the website')),
  fn () => $outbox->deliver($client($url), onSettled: $settled),
];
foreach ($scenarios as $index => $scenario) {
  try {
    $scenario();
  } catch (Throwable $error) {
    for ($each = $error; $each !== null; $each = $each->getPrevious()) echo "\n# ", $each::class, " of $index\n";
    show($error);
  }
}
foreach ([$of_service, $by_guzzle, clone $of_service, $outbox] as $object) {
  echo "\n# ", $object::class, "\n";
  show($object);
}`;

    const php = ['-d', 'zend.exception_ignore_args=0', '-r', program];
    const printed = await readOutput('php', php, env);
    const shown = new Set([...printed.matchAll(/^# (\S+) of/gm)].map(([, name]) => name));
    const classes = globSync('sdk/php/src/**/*Exception.php', { cwd: ROOT })
      .map((file) => file.slice('sdk/php/src/'.length, -'.php'.length).replaceAll('/', '\\'))
      .filter((name) => name !== 'Exception\\LeadIntakeException');
    for (const name of classes) expect(shown, printed.slice(0, 2000)).toContain(`LeadIntake\\${name}`);
    expect(shown).toContain('PDOException');
    expect(leaksIn(printed, canaries)).toEqual([]);
  });
});

describeWithTools([PYTHON_TOOL], 'in Python', () => {
  const folder = sharedFolder();
  let python: string;
  beforeAll(async () => {
    python = join(await pythonForTests(), 'python');
  });

  // @proves secrets-6
  test('no Python exception or representation reveals the key or the visitor', async () => {
    const { env, canaries } = await aMarkedStudio();
    const program = String.raw`
import asyncio, inspect, logging, os, pickle, pprint, sqlite3, sys, traceback
import lead_intake, lead_intake.outbox
from lead_intake import *
from lead_intake.outbox import Outbox, key_for
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG)
url, key, echo = (os.environ[name] for name in ("LEAD_INTAKE_URL", "LEAD_INTAKE_KEY", "ECHO_URL"))
name, email, note = (os.environ[name] for name in ("MARKED_NAME", "MARKED_EMAIL", "MARKED_NOTE"))
def client(at, kind=LeadIntakeClient):
    seconds = 60 if at == url else 1
    return kind(at, key, deadline_seconds=seconds, attempt_timeout_seconds=seconds)
def lead(name=name):
    return LeadCapture(name, EmailContact(email), note=note)
def show(value):
    print(value, repr(value))
    for each in vars(value).values() if hasattr(value, "__dict__") else ():
        pprint.pprint(each)
        print(each)
    if isinstance(value, BaseException):
        traceback.print_exception(value, file=sys.stdout)
        print(pickle.dumps(value, protocol=0))
of_service, of_async = client(url), client(url, AsyncLeadIntakeClient)
used = of_service.create_lead(lead()).idempotency_key
website = sqlite3.connect("website.db")
engine = create_engine("sqlite:///website.db")
outbox, lost = Outbox(lambda: sqlite3.connect("website.db"), table="leads"), Outbox(lambda: Session(engine), table="lost")
outbox.set_up()
with website:
    stored = outbox.add(website, lead())
class Broken(Exception):
    pass
def fail(settled):
    raise Broken("of the website")
scenarios = [
    lambda: LeadIntakeClient(url, key + "x"),
    lambda: LeadIntakeClient(url, key[:-1] + "\n"),
    lambda: LeadIntakeClient(f"https://marked:{key}@api.example.com", key),
    lambda: of_service.create_lead(lead("")),
    lambda: of_service.create_lead(lead()),
    lambda: of_service.create_lead(lead("Other"), idempotency_key=used),
    lambda: of_service.create_lead(lead(), used),
    lambda: of_service.create_lead({"displayName": name}),
    lambda: client("http://127.0.0.1:1").create_lead(lead()),
    lambda: client(echo).create_lead(lead()),
    lambda: asyncio.run(client("http://127.0.0.1:1", AsyncLeadIntakeClient).create_lead(lead())),
    lambda: asyncio.run(client(echo, AsyncLeadIntakeClient).create_lead(lead())),
    lambda: LeadCapture(name, EmailContact(email), note, 1, 2),
    lambda: Outbox(lambda: website, table="lost").add(website, lead()),
    lambda: lost.add(Session(engine), lead()),
    lambda: lost.add(engine.connect(), lead()),
    lambda: outbox.add(website, lead("Other"), idempotency_key=stored),
    lambda: outbox.add(website, lead("\ud83e" + name)),
    lambda: outbox.add(website, lead(name * 9000)),
    lambda: outbox.add(website, {"displayName": float("nan"), "note": name}),
    lambda: outbox.add(website, {"displayName": {name}, "note": note}),
    lambda: key_for("x", lead("\ud83e" + name)),
    lambda: outbox.deliver(of_service, on_settled=fail),
]
for index, scenario in enumerate(scenarios):
    try:
        scenario()
    except Exception as error:
        each = error
        while each is not None:
            print(f"\n# {type(each).__name__} of {index}")
            show(each)
            each = each.__cause__ or each.__context__
for value in (of_service, of_async, outbox):
    print(f"\n# {type(value).__name__}")
    show(value)
print("\n# classes")
for module in (lead_intake, lead_intake.outbox):
    for name, kind in inspect.getmembers(module, inspect.isclass):
        if issubclass(kind, Exception) and not kind.__subclasses__():
            print(name)`;
    const printed = await readOutput(python, ['-c', program], env, folder());

    const [output = '', classes = ''] = printed.split('\n# classes\n');
    expect(classes.trim().split('\n').length, printed.slice(-3000)).toBeGreaterThan(3);
    for (const name of [...classes.trim().split('\n'), 'ProblemError', 'OperationalError']) {
      expect(output).toContain(`\n# ${name} of`);
    }
    expect(leaksIn(output, canaries)).toEqual([]);
  });
});

// @proves secrets-6
test('no TypeScript error or inspected object reveals the key or the visitor', async () => {
  const { env, canaries } = await aMarkedStudio();
  const { LEAD_INTAKE_URL: baseUrl, LEAD_INTAKE_KEY: apiKey, ECHO_URL: echoUrl } = env;
  const client = (at: string) =>
    sdk.createLeadIntakeClient({ baseUrl: at, apiKey, deadlineMs: at === baseUrl ? 60_000 : 1000 });
  const lead = (displayName = NAME): sdk.LeadCapture => ({
    displayName,
    contact: { type: 'email', value: EMAIL },
    note: NOTE,
  });
  const ofService = client(baseUrl);
  const { idempotencyKey } = await ofService.createLead(lead());
  const database = new DatabaseSync(':memory:');
  const [outbox, lost] = [createOutbox({ table: 'leads' }), createOutbox({ table: 'lost' })];
  await outbox.setUp(database);
  const stored = outbox.add(database, lead());
  const circular: { note: string; lead?: object } = { note: NOTE };
  circular.lead = { [NOTE.length]: circular };
  const create = (overrides: object) => sdk.createLeadIntakeClient({ baseUrl, apiKey, ...overrides });
  const scenarios: readonly (() => unknown)[] = [
    () => create({ apiKey: `${apiKey}x` }),
    () => create({ apiKey: `${apiKey.slice(0, -1)}\n` }),
    () => create({ baseUrl: `https://marked:${apiKey}@api.example.com` }),
    () => ofService.createLead(lead(), 'a key' as unknown as object),
    () => ofService.createLead(circular as unknown as sdk.LeadCapture),
    () => ofService.createLead(lead('')),
    () => ofService.createLead(lead()),
    () => ofService.createLead(lead('Other'), { idempotencyKey }),
    () => ofService.createLead(lead(), { signal: AbortSignal.abort() }),
    () => client('http://127.0.0.1:1').createLead(lead()),
    () => client(echoUrl).createLead(lead()),
    () => lost.add(database, lead()),
    () => outbox.add(database, lead('Other'), { idempotencyKey: stored }),
    () => outbox.add(database, lead(`${NAME}\ud83e`)),
    () => outbox.add(database, lead(NAME.repeat(9000))),
    () => outbox.add(database, circular as unknown as sdk.LeadCapture),
    () => outbox.deliver(database, ofService, { onSettled: () => Promise.reject(new Error('of the website')) }),
  ];
  const shown = (value: unknown) => inspect(value, { depth: 20, showHidden: true }) + JSON.stringify(value) + value;
  const output: string[] = [];
  const seen = new Set<string>();
  for (const [index, scenario] of scenarios.entries()) {
    // Some scenarios throw, and others return a promise.
    const error = await new Promise((resolve) => resolve(scenario())).then(
      () => undefined,
      (error) => error,
    );
    expect(error, `scenario ${index}`).toBeInstanceOf(Error);
    seen.add(error.constructor.name);
    output.push(`${error.constructor.name} of ${index}\n${shown(error)}${error.stack}`);
  }
  for (const value of [ofService, outbox]) output.push(`an object\n${shown(value)}`);

  const classes = Object.values({ ...sdk, OutboxError }).filter((value) => value.prototype instanceof Error);
  const thrown = classes.map(({ name }) => name).filter((name) => name !== 'LeadIntakeError');
  expect([...seen]).toEqual(expect.arrayContaining(thrown));
  expect(leaksIn(output.join('\n# '), canaries)).toEqual([]);
});
