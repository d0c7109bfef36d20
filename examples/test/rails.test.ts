import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
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
import { testRecipe, testRecipeOnServers } from '../../sdk/test/support/recipe-situations.ts';
import { expectToBeASender } from '../../sdk/test/support/senders.ts';
import { queryFile, type WebsiteDatabase } from '../../sdk/test/support/website-databases.ts';
import { commandsIn, describeWithTools, runCommands, watchCommands } from '../../test/tools/commands.ts';
import { ROOT, type RunningProcess, sharedFolder } from '../../test/tools/processes.ts';
import { aServiceWithPackages } from '../../test/tools/served-packages.ts';
import { freePort } from '../../test/tools/servers.ts';

const page = readFileSync(join(ROOT, 'examples/recipes/rails/README.md'), 'utf8');
const { service, url: serviceUrl } = aServiceWithPackages(buildPackages);

// @proves others-9
describeWithTools([`ruby -e 'require "json"'`], 'the sender of the recipe for Rails', () => {
  test('does in every conversation that creates leads what a client must do', () =>
    expectToBeASender(['ruby', 'examples/test/rails-sender-driver.rb']));
});

const WITH_A_CLOCK = `
  require "active_record"
  require "active_support/testing/time_helpers"
  include ActiveSupport::Testing::TimeHelpers
  ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")`;

/** Prints the keys of submissions, by the model of the recipe. */
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
  test('are those of the clients', async () => {
    const vectors = formKeys.filter(({ capture }) => capture.contact.type === 'email');
    const { stdout } = await promisify(execFile)('ruby', ['-e', KEYS, JSON.stringify(vectors)], { cwd: ROOT });
    expect(stdout.trim().split('\n')).toEqual(vectors.map(({ key }) => key));
  });
});

/** Loads the model of the recipe where `enum` takes what Rails 8 has left of it, whatever Rails is here, and prints the states. */
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

/**
 * Makes passes, each beside another one, which get an answer that asks for a pause: one by a clock that is ahead, which has stored the
 * lead, and two by the right one. Prints the attempts of each, the number of reported leads between, and what comes of it a day later.
 */
const CLOCK_AHEAD = `${WITH_A_CLOCK}
  ActiveRecord::Migration.verbose = false
  require Dir["./examples/recipes/rails/db/migrate/*leads_to_send.rb"].first
  CreateLeadsToSend.new.migrate(:up)
  class ApplicationRecord < ActiveRecord::Base; self.abstract_class = true; end
  require "./examples/recipes/rails/app/models/lead_intake"
  require "./examples/recipes/rails/app/models/lead_to_send"
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

describeWithTools([`ruby -e 'require "active_record"; require "sqlite3"'`], 'the model of the recipe for Rails', () => {
  // The right clock tries it at once, once, and reports it; a pause of its own it keeps.
  test.each([
    [72, [1, 1, 1, 0, 1]],
    [0, [1, 0, 0, 0, 1]],
  ])('sends a lead that a clock %i hours ahead has stored and paused', async (hours, attempts) => {
    const { stdout } = await promisify(execFile)('ruby', ['-e', CLOCK_AHEAD, `${hours}`], { cwd: ROOT });
    expect(stdout.trim().split('\n')).toEqual([JSON.stringify(attempts), 'delivered']);
  });

  test('has its states by the only form that Rails 8 knows', async () => {
    const { stdout } = await promisify(execFile)('ruby', ['-e', RAILS_8], { cwd: ROOT });
    expect(Object.keys(JSON.parse(stdout))).toContain('already_open');
  });
});

const RAILS = `ruby -e 'require "rails"; require "sqlite3"; require "puma"`;

// @proves clients-4 others-10
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
    const website = startBlock('rails-website', '', clock.env);
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
  /** The website's leads, oldest first. */
  const leads = () => onTable('SELECT state, reason, capture FROM leads_to_send ORDER BY id');
  const until = (state: object) =>
    vi.waitFor(() => expect(leads().at(-1)).toMatchObject(state), { timeout: 90_000, interval: 100 });

  const send = async (name: string, message = '') =>
    (await openForm(`${url}/contact`)).send({ name, email: `${name}@example.com`, message });

  test('delivers each lead once, through stops of the service and of the website, and loses no text', {
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
    // Neither personal data nor the key is logged.
    const logged = [website, worker, again, workerAgain].map((each) => each.output()).join('');
    expect(logged).not.toMatch(new RegExp(`ada@|mary@|${secret}`));
    await workerAgain.kill();
    expect(await runCommands(commandsIn(page, 'rails-report'), env())).toMatchObject({ status: 0, stdout: '' });
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

// A whole website more.
if (process.env.SOAK)
  // @proves clients-4
  describeWithTools([`${RAILS}; require "mysql2"; require "pg"'`], 'the recipe for Rails with its worker', () => {
    const home = sharedFolder();
    testRecipeOnServers(service, SERVERS, SERVERS.length, async (database, settings, onTestFinished) => {
      const url = `http://127.0.0.1:${await freePort()}`;
      const env = { HOME: home(), PORT: new URL(url).port, DATABASE_URL: urlOf(database), ...settings };
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

/** The address of a database as Rails takes it. */
function urlOf(database: WebsiteDatabase): string {
  const { kind, host, port, user, password, database: name } = database.address as Record<string, string>;
  return `${kind === 'mariadb' ? 'mysql2' : kind}://${user}:${password}@${host}:${port}/${name}`;
}
