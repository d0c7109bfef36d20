import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DriverClock } from '../../sdk/conformance/driver-clock.ts';
import formKeys from '../../sdk/conformance/form-keys.json' with { type: 'json' };
import { buildPackages } from '../../sdk/packages/build-packages.ts';
import { openForm } from '../../sdk/test/support/forms.ts';
import { expectPage } from '../../sdk/test/support/outbox-page.ts';
import { testRecipe, testRecipeOnServers } from '../../sdk/test/support/recipe-situations.ts';
import { expectToBeASender } from '../../sdk/test/support/senders.ts';
import { queryFile, type WebsiteDatabase } from '../../sdk/test/support/website-databases.ts';
import { commandsIn, describeWithTools, runCommands, watchCommands } from '../../test/tools/commands.ts';
import { ROOT, type RunningProcess, sharedFolder, temporaryFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import { freePort } from '../../test/tools/servers.ts';

const page = readFileSync(join(ROOT, 'examples/recipes/rails/README.md'), 'utf8');
const { service, url: serviceUrl } = aServiceWithPackages(buildPackages);

// @proves others-9
describeWithTools([`ruby -e 'require "json"'`], 'the sender of the recipe for Rails', () => {
  test('the sender passes every conversation that creates leads', () =>
    expectToBeASender(['ruby', 'examples/test/rails-sender-driver.rb']));
});

const WITH_A_CLOCK = `
  require "active_record"
  require "active_support/testing/time_helpers"
  include ActiveSupport::Testing::TimeHelpers
  ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")`;

/** Prints the keys that the model of the recipe derives from submissions. */
const KEYS = `${WITH_A_CLOCK}
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define { create_table(:contact_requests) { |t| t.text :name, :email, :message } }
  class ApplicationRecord < ActiveRecord::Base; self.abstract_class = true; end
  require "./examples/recipes/rails/app/models/contact_request"
  JSON.parse(ARGV[0]).each do |row|
    data = row["capture"]
    typed = { name: data["displayName"], email: data["contact"]["value"], message: data["note"], form_key: row["formKey"] }
    travel_to(Time.iso8601(row["at"])) { puts ContactRequest.new(typed).send(:idempotency_key) }
  end`;

// @proves clients-11
describeWithTools([`ruby -e 'require "active_record"; require "sqlite3"'`], 'the keys of the recipe for Rails', () => {
  test('the recipe derives the same keys as the clients', async () => {
    const vectors = formKeys.filter(({ capture }) => capture.contact.type === 'email');
    const { stdout } = await promisify(execFile)('ruby', ['-e', KEYS, JSON.stringify(vectors)], { cwd: ROOT });
    expect(stdout.trim().split('\n')).toEqual(vectors.map(({ key }) => key));
  });
});

/** Loads the model of the recipe with an `enum` that takes only the form of Rails 8, and prints the states. */
const RAILS_8 = `
  require "active_record"
  ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define { create_table(:leads_to_send) { |t| t.string :state } }
  ActiveRecord::VERSION.send(:remove_const, :MAJOR)
  ActiveRecord::VERSION::MAJOR = 8
  class ApplicationRecord < ActiveRecord::Base
    self.abstract_class = true
    def self.enum(name, values, **options) = super(options.merge(name => values))
  end
  require "./examples/recipes/rails/app/models/lead_to_send"
  puts LeadToSend.states.to_json`;

/** Loads the model of the recipe, with an empty table. */
const WITH_THE_MODEL = `${WITH_A_CLOCK}
  ActiveRecord::Migration.verbose = false
  require Dir["./examples/recipes/rails/db/migrate/*leads_to_send.rb"].first
  CreateLeadsToSend.new.migrate(:up)
  class ApplicationRecord < ActiveRecord::Base; self.abstract_class = true; end
  require "./examples/recipes/rails/app/models/lead_intake"
  require "./examples/recipes/rails/app/models/lead_to_send"`;

/**
 * Makes three passes whose response asks for a pause, each with a concurrent pass. A clock that is ahead stores the lead and makes the first
 * one; the right clock makes the others. Prints the attempts of each, the number of reported leads in between, and the state a day later.
 */
const CLOCK_AHEAD = `${WITH_THE_MODEL}
  Service = Struct.new(:answer, :calls) do
    def create(*)
      self.calls += 1
      LeadToSend.deliver(self) if calls == 1
      LeadIntake::Outcome.new(**answer)
    end
  end
  paused = { state: "waiting", reason: "503 paused", retry_after: 86_400 }
  deliver = lambda do |answer|
    service = Service.new(answer, 0)
    LeadToSend.deliver(service)
    service.calls
  end
  ahead = Integer(ARGV[0]).hours
  now = Time.current
  attempts = []
  travel_to(now + ahead) do
    LeadToSend.create!(capture: { displayName: "Ada" })
    attempts << deliver.(paused)
  end
  travel_to(now) do
    attempts << deliver.(paused)
    attempts << LeadToSend.in_need.count
    attempts << deliver.(paused)
  end
  travel_to(now + 25.hours) { attempts << deliver.({ state: "delivered", lead_id: "1" }) }
  puts attempts.to_json, LeadToSend.first.state`;

/**
 * Takes leads through lists of steps: responses of the service, and a person's actions. Prints the state of each lead, whether its data is
 * kept, and the data that was sent without being a lead. `read` reads the row on which `stale_` actions act; the action before a `+` happens
 * during the request, and the one before a `/` between the lease and its read.
 */
const LIVES = `${WITH_THE_MODEL}
  ACTIONS = { "retry" => :send_again, "discard" => :discard }
  ANSWERS = {
    "delivered" => { state: "delivered", lead_id: "1" },
    "replayed" => { state: "delivered", lead_id: "1", replayed: true },
    "open" => { state: "already_open", lead_id: "1", reason: "409 integration_lead_already_open" },
    "refused" => { state: "refused", reason: "400 no" },
    "lost" => { state: "waiting", reason: "no answer" },
    "wrong" => { state: "waiting", reason: "401 no", needs_somebody: true }
  }
  act = ->(name) { LeadToSend.first.public_send(ACTIONS.fetch(name)) if name }
  at_lease = nil
  LeadToSend.prepend(Module.new do
    define_method(:reload) do |*options|
      now, at_lease = at_lease, nil
      act.(now)
      super(*options)
    end
  end)
  Service = Struct.new(:during, :answer, :sent, :act) do
    def create(capture, _)
      sent << "sent #{capture.inspect}" unless capture.is_a?(Hash)
      act.(during)
      LeadIntake::Outcome.new(**ANSWERS.fetch(answer))
    end
  end
  puts JSON.generate(JSON.parse(ARGV[0]).map { |note, steps|
    LeadToSend.delete_all
    LeadToSend.create!(capture: { displayName: "Ada", note: note }.compact)
    stale, sent = nil, []
    steps.split.each do |step|
      if step == "read" then stale = LeadToSend.first
      elsif step.start_with?("stale_") then stale.public_send(ACTIONS.fetch(step.delete_prefix("stale_")))
      elsif ACTIONS.key?(step) then act.(step)
      else
        LeadToSend.update_all(next_attempt_at: 1.minute.ago, paused_until: nil)
        at_lease, step = step.split("/") if step.include?("/")
        *during, answer = step.split("+")
        LeadToSend.deliver(Service.new(during.first, answer, sent, act))
      end
    end
    lead = LeadToSend.first
    [lead.state, lead.capture ? "kept" : "erased", *sent]
  })`;

/** The states in which leads with and without a note end after some steps, as the page on outboxes says. */
const OUTCOMES: readonly (readonly [steps: string, withNote: string, without: string])[] = [
  ['delivered', 'delivered erased', 'delivered erased'],
  ['open', 'already_open kept', 'already_open erased'],
  ['replayed', 'delivered kept', 'delivered kept'],
  ['refused', 'refused kept', 'refused kept'],
  ['lost', 'waiting kept', 'waiting kept'],
  // An attempt without a response may have created the lead. A refused one has not.
  ['lost replayed', 'delivered erased', 'delivered erased'],
  ['lost retry replayed', 'delivered erased', 'delivered erased'],
  ['lost refused retry replayed', 'delivered erased', 'delivered erased'],
  ['wrong retry replayed', 'delivered kept', 'delivered kept'],
  ['refused retry replayed', 'delivered kept', 'delivered kept'],
  // A lead that the service has is not sent again.
  ['replayed retry replayed', 'delivered kept', 'delivered kept'],
  ['open retry open', 'already_open kept', 'already_open erased'],
  ['replayed discard retry', 'delivered erased', 'delivered erased'],
  ['refused discard retry delivered', 'discarded erased', 'discarded erased'],
  // Two people, or a person and a worker, act at once.
  ['refused read discard stale_retry delivered', 'discarded erased', 'discarded erased'],
  ['refused read retry delivered stale_discard', 'delivered erased', 'delivered erased'],
  ['read discard+delivered', 'discarded erased', 'discarded erased'],
  ['discard+lost', 'discarded erased', 'discarded erased'],
  ['discard+refused', 'discarded erased', 'discarded erased'],
  ['discard/delivered', 'discarded erased', 'discarded erased'],
  ['retry+refused', 'waiting kept', 'waiting kept'],
];

describeWithTools([`ruby -e 'require "active_record"; require "sqlite3"'`], 'the model of the recipe for Rails', () => {
  // A pass with the right clock immediately tries the lead once, and reports it. It respects a pause of its own.
  test.each([
    [72, [1, 1, 1, 0, 1]],
    [0, [1, 0, 0, 0, 1]],
  ])('a lead is sent although a clock %i hours ahead has stored and paused it', async (hours, attempts) => {
    const { stdout } = await promisify(execFile)('ruby', ['-e', CLOCK_AHEAD, `${hours}`], { cwd: ROOT });
    expect(stdout.trim().split('\n')).toEqual([JSON.stringify(attempts), 'delivered']);
  });

  // @proves others-10
  test('the model keeps the data of each lead until somebody has it, whoever acts at once', async () => {
    const lives = OUTCOMES.flatMap(([steps]) => [
      ['A trial, please.', steps],
      [null, steps],
    ]);
    const { stdout } = await promisify(execFile)('ruby', ['-e', LIVES, JSON.stringify(lives)], { cwd: ROOT });
    const became: string[] = JSON.parse(stdout).map((life: unknown[]) => life.join(' '));
    const told = OUTCOMES.map(([steps], index) => [steps, became[2 * index], became[2 * index + 1]]);
    expect(told).toEqual(OUTCOMES);
  });

  test('the model declares its states in the only form that Rails 8 knows', async () => {
    const { stdout } = await promisify(execFile)('ruby', ['-e', RAILS_8], { cwd: ROOT });
    expect(Object.keys(JSON.parse(stdout))).toContain('already_open');
  });
});

const PASSWORD = 'of the office: ä';
const RAILS = `ruby -e 'require "rails"; require "sqlite3"; require "puma"`;

// @proves leads-27 others-10
describeWithTools([`${RAILS}'`], 'the recipe for Rails', () => {
  const home = sharedFolder();
  let url: string;
  let clock: DriverClock;
  let website: RunningProcess;
  let tasks: ChildProcessByStdio<Writable, Readable, null>;
  let replies: AsyncIterator<string>;
  const running: RunningProcess[] = [];
  const env = () => ({ HOME: home(), PORT: new URL(url).port, LEAD_INTAKE_URL: service.url });
  const startBlock = (mark: string, input = '', more = {}): RunningProcess => {
    const started = watchCommands(commandsIn(page, mark), { ...env(), ...more }, input);
    running.push(started);
    return started;
  };
  const startWebsite = async () => {
    const website = startBlock('rails-website', '', { ...clock.env, LEAD_INTAKE_PAGE_PASSWORD: PASSWORD });
    await website.printed(/Listening on/);
    return website;
  };
  beforeAll(async () => {
    clock = new DriverClock();
    url = `http://127.0.0.1:${await freePort()}`;
    const { status, stderr } = await runCommands(commandsIn(page, 'rails-set-up'), {
      ...env(),
      LEAD_INTAKE_URL: serviceUrl(),
    });
    expect(status, stderr).toBe(0);
    website = await startWebsite();
    const driver = `cd ~/website\nexec ruby ${join(ROOT, 'examples/test/rails-tasks-driver.rb')}`;
    tasks = spawn('bash', ['-ec', driver], {
      env: { ...process.env, ...env(), RAILS_ENV: 'production' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    replies = createInterface({ input: tasks.stdout })[Symbol.asyncIterator]();
  });
  afterAll(async () => {
    tasks.kill();
    for (const each of running) await each.kill();
    clock.remove();
  });

  const onTable = (sql: string) => queryFile(join(home(), 'website/db/website.sqlite3'), sql);
  /** Returns the website's leads, oldest first. */
  const leads = () => onTable('SELECT state, reason, capture FROM leads_to_send ORDER BY id');
  const until = (state: object) =>
    vi.waitFor(() => expect(leads().at(-1)).toMatchObject(state), { timeout: 90_000, interval: 100 });

  const send = async (name: string, message = '') =>
    (await openForm(`${url}/contact`)).send({ name, email: `${name}@example.com`, message });

  test('each lead arrives once although the service and the website stop, and no text is lost', {
    concurrent: false,
  }, async () => {
    const { studioId, secret } = await service.aStudioWithKey();
    await send('ada');
    const worker = startBlock('rails-worker', `${secret}\n`);
    await until({ state: 'delivered', capture: null });

    const open = await openForm(`${url}/contact`);
    await website.kill();
    await worker.kill();
    await service.stopCore();
    const again = await startWebsite();
    expect(await open.send({ name: 'mary', email: 'mary@example.com' })).toMatchObject({ text: 'Thank you' });
    const workerAgain = startBlock('rails-worker', `${secret}\n`);
    await until({ state: 'waiting', reason: expect.stringMatching(/^503 |^no answer/) });
    await service.startCore();
    await until({ state: 'delivered' });
    expect(await service.countLeads(studioId)).toBe(2);
    // The logs have no personal data and no key.
    const logged = [website, worker, again, workerAgain].map((each) => each.output()).join('');
    expect(logged).not.toMatch(new RegExp(`ada@|mary@|${secret}`));
    await workerAgain.kill();
    expect(await runCommands(commandsIn(page, 'rails-report'), env())).toMatchObject({ status: 0, stdout: '' });
  });

  // @proves page-4
  test('the office page shows the leads that need attention only with the password', {
    concurrent: false,
  }, async () => {
    const store = (state: string, key = randomUUID()) => {
      const capture = '{"displayName":"Ada","contact":{"type":"email","value":"nowhere"}}';
      const now = new Date().toISOString().slice(0, -1).replace('T', ' ');
      onTable('DELETE FROM leads_to_send');
      onTable(
        `INSERT INTO leads_to_send (idempotency_key, capture, state, attempts, created_at, updated_at, next_attempt_at, reason)
       VALUES ('${key}', '${capture}', '${state}', 1, '${now}', '${now}', '${now}', '400 no')`,
      );
      return key;
    };
    store('refused');
    await expectPage({ url: `${url}/office/leads`, password: PASSWORD, rows: leads });
    expect(website.output()).not.toMatch(/nowhere|Ada/);

    // A lead that the service has is not sent again. Refusals have the headers of the page.
    for (const state of ['delivered', 'already_open']) {
      const body = JSON.stringify({ action: 'retry', idempotencyKey: store(state) });
      const before = leads();
      for (const [given, status] of [
        [PASSWORD, 409],
        ['', 401],
      ] as const) {
        const authorization = `Basic ${Buffer.from(`office:${given}`).toString('base64')}`;
        const headers = { 'content-type': 'application/json', 'x-outbox-page': '1', authorization };
        const answer = await fetch(`${url}/office/leads`, { method: 'POST', headers, body });
        expect([answer.status, answer.headers.get('cache-control')]).toEqual([status, 'no-store']);
        expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
      }
      expect(leads()).toEqual(before);
    }
    onTable('DELETE FROM leads_to_send');

    onTable('ALTER TABLE leads_to_send RENAME TO away');
    const authorization = `Basic ${Buffer.from(`office:${PASSWORD}`).toString('base64')}`;
    const failed = await fetch(`${url}/office/leads`, { headers: { accept: 'application/json', authorization } });
    onTable('ALTER TABLE away RENAME TO leads_to_send');
    expect([failed.status, await failed.json()]).toEqual([
      500,
      { error: expect.stringMatching(/does not answer.*\.$/) },
    ]);

    const script = `session = ActionDispatch::Integration::Session.new(Rails.application)
      session.get("/office/leads", headers: { "Authorization" => "Basic b2ZmaWNlOg==" })
      puts session.response.status, session.response.body`;
    const runner = `cd ~/website && RAILS_ENV=production ruby bin/rails runner '${script}'`;
    const { stdout } = await runCommands(runner, { ...env(), LEAD_INTAKE_PAGE_PASSWORD: '' });
    expect(stdout).toBe('503\nLEAD_INTAKE_PAGE_PASSWORD must be set.\n');
  });

  testRecipe(service, () => ({
    clock,
    empty: async () => onTable('DELETE FROM leads_to_send'),
    open: () => openForm(`${url}/contact`),
    async send(settings) {
      onTable("UPDATE leads_to_send SET next_attempt_at = '2000-01-01', paused_until = NULL");
      tasks.stdin.write(`${JSON.stringify(settings)}\n`);
      const { value = '' } = await replies.next();
      return { stdout: JSON.parse(value), stderr: '' };
    },
    report: async () => '',
  }));
});

const SERVERS = ['MariaDB', 'PostgreSQL'] as const;

// This test needs a second website.
if (process.env.SOAK)
  // @proves leads-27
  describeWithTools([`${RAILS}; require "mysql2"; require "pg"'`], 'the recipe for Rails with its worker', () => {
    testRecipeOnServers(service, SERVERS, SERVERS.length, async (database, settings, onTestFinished) => {
      const url = `http://127.0.0.1:${await freePort()}`;
      const env = {
        HOME: temporaryFolder(onTestFinished),
        PORT: new URL(url).port,
        DATABASE_URL: toUrl(database),
        ...settings,
      };
      const { status, stderr } = await runCommands(commandsIn(page, 'rails-set-up'), {
        ...env,
        LEAD_INTAKE_URL: serviceUrl(),
      });
      expect(status, stderr).toBe(0);
      const running = [
        watchCommands(commandsIn(page, 'rails-website'), env),
        watchCommands(commandsIn(page, 'rails-worker'), env, `${settings.LEAD_INTAKE_KEY}\n`),
      ];
      onTestFinished(async () => {
        for (const each of running) await each.kill();
      });
      await running[0]?.printed(/Listening on/);
      return { open: () => openForm(`${url}/contact`) };
    });
  });

/** Returns the address of a database in the form that Rails takes. */
function toUrl(database: WebsiteDatabase): string {
  const { kind, host, port, user, password, database: name } = database.address as Record<string, string>;
  return `${kind === 'mariadb' ? 'mysql2' : kind}://${user}:${password}@${host}:${port}/${name}`;
}
