import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { describeWithTools, findExample, watchCommands } from '../../test/tools/commands.ts';
import { sharedFolder } from '../../test/tools/processes.ts';
import { aServedService } from '../../test/tools/served-service.ts';
import { freePort } from '../../test/tools/servers.ts';
import { startProxy } from '../../test/tools/tcp-proxy.ts';
import { plantInCopy } from './planted-bugs/plant-in-copy.ts';
import { codeSamplesIn, DOCUMENTED_TYPES } from './support/openapi.ts';
import { expectPage } from './support/outbox-page.ts';
import { aPhpWebsite, GUZZLE, PHP_TOOLS, type PhpWebsite, PSR_LOG } from './support/php-website.ts';
import { queryFile } from './support/website-databases.ts';

const service = aServedService();

const README = 'sdk/php/README.md';

// @proves leads-23 others-12
describeWithTools(PHP_TOOLS, 'the client for PHP', () => {
  const scratch = sharedFolder();
  let website: PhpWebsite;
  beforeAll(async () => {
    website = await aPhpWebsite(scratch());
    website.write('first-lead.php', findExample(README, 'first-lead'));
    website.write('contact-form.php', findExample(README, 'contact-form'));
  });

  const aCopy = () => website.copy(join(scratch(), randomUUID()));

  /** Returns the environment for the website's programs. */
  const envFor = (secret: string, url: string) => ({ LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret });

  /** Runs statements with the client's classes imported. */
  const runWith = (statements: string, secret: string, url = service.url, options: string[] = []): Promise<string> =>
    website.runStatements(
      `require 'contact-form.php';
      use LeadIntake\\{Contact, Lead, LeadCapture, LeadIntakeClient, LeadList, LeadStage, ProblemCode};
      use LeadIntake\\Transport\\Psr18Transport;
      [$url, $key] = [getenv('LEAD_INTAKE_URL'), getenv('LEAD_INTAKE_KEY')];
      $grace = new LeadCapture('Grace', Contact::email('grace@example.org'), note: 'Asks for a trial.');
      ${statements}`,
      envFor(secret, url),
      options,
    );

  // @proves clients-1
  test('the PHP client runs the sample of each operation in the API reference', async () => {
    const { secret } = await service.aStudioWithKey();
    const { create, read, list } = codeSamplesIn('php', service.url);
    const runSample = (source: string) => {
      website.write('sample.php', source);
      return website.run('sample.php', envFor(secret, service.url));
    };
    const id = await runSample(create);
    expect(await runSample(read(id))).toBe('new');
    expect(await runSample(list)).toBe('Grace Hopper');
  });

  test('the installed PHP client runs the README examples: the first lead, and a contact form', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    expect(await website.run('first-lead.php', envFor(secret, service.url))).toMatch(/^lead \S+$/);
    const [key, another] = [randomUUID(), randomUUID()];
    const printed = await runWith(
      `$leads = new LeadIntakeClient($url, $key);
      foreach (['${key}', '${key}', '${another}'] as $each)
        echo onContactForm($leads, $grace, $each, function (string $note) { echo "kept: $note\\n"; }), "\\n";`,
      secret,
    );
    const [first = '', ...others] = printed.split('\n');
    const [, id] = /^lead (\S+)$/.exec(first) ?? [];
    expect(others).toEqual([`lead ${id}`, 'kept: Asks for a trial.', `open already: ${id}`]);
    expect(await service.countLeads(studioId)).toBe(2);
  });

  test('a PHP process sends its leads over one connection, and a forked process has its own', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    await runWith(
      `$leads = new LeadIntakeClient($url, $key);
      $create = fn (int $number) => $leads->createLead(new LeadCapture("G$number", Contact::email("g$number@example.org")));
      array_map($create, range(1, 10));
      $child = pcntl_fork();
      array_map($create, $child === 0 ? range(11, 15) : range(16, 20));
      if ($child !== 0) pcntl_waitpid($child, $status);`,
      secret,
      `http://127.0.0.1:${proxy.port}`,
    );
    expect([proxy.opened(), await service.countLeads(studioId)]).toEqual([2, 20]);
    await proxy.stop();
  });

  test('the PHP client reports a lost reply as unknown, even if it cannot connect afterwards', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    proxy.loseReplies({ of: (request) => request.includes('POST'), from: 2, meanwhile: () => proxy.stop() });
    const printed = await runWith(
      `$leads = new LeadIntakeClient($url, $key, deadlineSeconds: 8);
      $leads->createLead($grace);
      try {
        $leads->createLead(new LeadCapture('Ada', Contact::email('ada@example.org')));
      } catch (LeadIntake\\Exception\\NoAnswerException $error) {
        echo $error->written->name;
      }`,
      secret,
      `http://127.0.0.1:${proxy.port}`,
    );
    expect([printed, await service.countLeads(studioId)]).toEqual(['Unknown', 2]);
  });

  test('the PHP client sends through PSR-18, and logs failures without secrets or personal data', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const proxy = await startProxy('127.0.0.1', Number(new URL(service.url).port));
    proxy.loseReplies({ of: (bytes) => bytes.toString('latin1').startsWith('POST ') });
    const printed = await runWith(
      `require '${GUZZLE}';
      require '${PSR_LOG}';
      class Lines extends Psr\\Log\\AbstractLogger {
        public function log($level, $message, array $context = []): void { echo json_encode([$level, $message, $context]), "\\n"; }
      }
      $factory = new GuzzleHttp\\Psr7\\HttpFactory();
      $transport = new Psr18Transport(new GuzzleHttp\\Client(['timeout' => 10]), $factory, $factory);
      $leads = new LeadIntakeClient($url, $key, transport: $transport, logger: new Lines());
      var_dump($leads->createLead($grace)->replayed);
      try {
        $leads->createLead(new LeadCapture('', Contact::phone('12345')));
      } catch (LeadIntake\\Exception\\ProblemException $error) {
        echo "$error->status $error->problemCode ", implode(' ', array_keys($error->fields));
      }`,
      secret,
      `http://127.0.0.1:${proxy.port}`,
    ).finally(() => proxy.stop());

    const [log = '', ...others] = printed.split('\n');
    expect(others).toEqual(['bool(true)', '400 integration_invalid_request displayName']);
    expect(JSON.parse(log)).toEqual([
      'info',
      expect.stringContaining('{failure}'),
      { attempt: 1, failure: 'no answer', seconds: expect.any(Number) },
    ]);
    expect(log).not.toMatch(new RegExp(`${secret}|grace`, 'i'));
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('the PHP client explains a missing answer in the same words with curl and with PSR-18', async () => {
    const { secret } = await service.aStudioWithKey();
    const printed = await runWith(
      `require '${GUZZLE}';
      $factory = new GuzzleHttp\\Psr7\\HttpFactory();
      foreach ([null, new Psr18Transport(new GuzzleHttp\\Client(), $factory, $factory)] as $transport) {
        try {
          (new LeadIntakeClient($url, $key, deadlineSeconds: 1, transport: $transport))->createLead($grace);
        } catch (LeadIntake\\Exception\\NoAnswerException $error) {
          echo $error->getMessage(), "\\n";
        }
      }`,
      secret,
      'http://127.0.0.1:1',
    );
    const [first = '', second = ''] = printed.split('\n');
    expect(first).toMatch(/: connection refused \(.*[Cc]onnect.*\)$/);
    // Only curl knows that nothing was sent.
    expect(second.slice(0, first.length + 1)).toBe(`${first};`);
  });

  test('the PHP client sends and stores leads on a host that disables optional functions', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const disabled =
      'getmypid,gethostname,php_uname,set_time_limit,ignore_user_abort,pcntl_fork,pcntl_signal_get_handler';
    const printed = await runWith(
      `$outbox = new LeadIntake\\Outbox\\Outbox(new PDO('sqlite::memory:'), 'leads');
      $outbox->setUp();
      $outbox->add($grace);
      echo $outbox->deliver(new LeadIntakeClient($url, $key))->delivered;`,
      secret,
      service.url,
      ['-d', `disable_functions=${disabled}`],
    );
    expect([printed, await service.countLeads(studioId)]).toEqual(['1', 1]);
  });

  test('an unexpected error of a PHP transport or listener blocks no other lead', async () => {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await runWith(
      `use LeadIntake\\Transport\\{CurlTransport, Response, Transport};
      final class OwnWay implements Transport {
        private int $sent = 0;
        public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response {
          if ($this->sent++ === 0) throw new UnderflowException('a proxy of its own');
          return (new CurlTransport())->send($method, $url, $headers, $body, $timeoutSeconds);
        }
      }
      $pdo = new PDO('sqlite::memory:');
      $outbox = new LeadIntake\\Outbox\\Outbox($pdo, 'leads');
      $outbox->setUp();
      foreach (['Ada', 'Grace'] as $name) $outbox->add(new LeadCapture($name, Contact::email("$name@example.org")));
      $listen = fn () => throw new DomainException('no metrics');
      ini_set('error_log', 'own-way.log');
      try {
        $outbox->deliver(new LeadIntakeClient($url, $key, transport: new OwnWay(), onAttempt: $listen));
      } catch (LeadIntake\\Outbox\\OutboxException $error) {
        echo file_get_contents('own-way.log'), $error->getPrevious()::class, "\\n";
      }
      foreach ($pdo->query('SELECT state, reason FROM leads ORDER BY state') as $row) echo "$row[state] $row[reason]\\n";`,
      secret,
    );
    expect(printed.trim().split('\n')).toEqual([
      expect.stringMatching(/Lead Intake: onAttempt has thrown DomainException: no metrics$/),
      'UnderflowException',
      'delivered ',
      // The file and line replace the message, which could contain the visitor's data.
      expect.stringMatching(/^waiting UnderflowException at [\da-f-]+\.php:\d+$/),
    ]);
    expect(await service.countLeads(studioId)).toBe(1);
  });

  test('the PHP client has every field and value of the OpenAPI document', async () => {
    const printed = await runWith(
      `function sorted(array $names): array { sort($names); return $names; }
      function listFields(string $class): array {
        return sorted(array_map(fn ($each) => $each->name, (new ReflectionClass($class))->getProperties()));
      }
      function listValues(string $enum): array { return sorted(array_column($enum::cases(), 'value')); }
      $problem = new ReflectionMethod(LeadIntake\\Exception\\ProblemException::class, '__construct');
      $fields = array_map(fn ($each) => $each->name, $problem->getParameters());
      $fields = array_diff($fields, ['retryAfterSeconds', 'written', 'idempotencyKey', 'attempts']);
      echo json_encode([
        'LeadCapture' => listFields(LeadCapture::class),
        'EmailContact' => listFields(Contact::class),
        'PhoneContact' => listFields(Contact::class),
        'Lead' => listFields(Lead::class),
        'LeadList' => listFields(LeadList::class),
        'ProblemDetails' => sorted(str_replace('problemCode', 'code', $fields)),
        'LeadStage' => listValues(LeadStage::class),
        'ProblemCode' => listValues(ProblemCode::class),
      ]);`,
      '',
    );
    expect(JSON.parse(printed)).toEqual(DOCUMENTED_TYPES);
  });

  // @proves leads-24 clients-14
  test('the PHP outbox stores and sends leads, and lists problems, as its README shows', async () => {
    const website = aCopy();
    const { secret, studioId } = await service.aStudioWithKey();
    const send = (url: string) => website.run('send-leads.php', { LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret });
    const onTable = (sql: string) =>
      website.runStatements(
        `echo json_encode((new PDO('sqlite:website.db'))->query("${sql}")->fetchAll(PDO::FETCH_NUM));`,
      );
    website.write('form.php', findExample(README, 'outbox-form'));
    website.write('send-leads.php', findExample(README, 'outbox-send'));
    website.write('leads-in-need.php', findExample(README, 'outbox-attention'));
    website.write('send-now.php', findExample(README, 'outbox-now'));
    const sendNow = (env: Record<string, string>) =>
      website.runStatements(`require 'send-now.php'; sendNow(new PDO('sqlite:website.db'));`, env, [
        '-d',
        'error_log=/dev/null',
      ]);
    // The form creates the table: a visitor may come before the cron job has run.
    await website.runStatements(
      `require 'form.php';
      $website = new PDO('sqlite:website.db');
      $form = ['name' => 'Grace', 'email' => 'grace@example.org', 'message' => 'Zoë 😀', 'key' => 'one page'];
      storeEnquiry($website, $form);
      storeEnquiry($website, $form);`,
    );
    // Without settings no client can be created, but nothing is thrown.
    expect(await sendNow({})).toBe('');
    // Nothing listens on that port.
    expect(await send('http://127.0.0.1:1')).toBe('0 delivered, 1 wait');
    const faults = await website.runStatements(
      `require 'form.php';
      $form = ['name' => 'Ada', 'email' => 'nowhere', 'message' => 'Psst', 'key' => 'another page'];
      $website = new PDO('sqlite:website.db');
      echo json_encode(storeEnquiry($website, $form));
      (new LeadIntake\\Outbox\\Outbox($website, 'example_com_leads'))->add(['displayName' => 'Ada', 'contact' => ['type' => 'email', 'value' => 'nowhere']]);`,
    );
    expect(Object.keys(JSON.parse(faults))).toEqual(['contact.value']);
    await onTable(
      "UPDATE example_com_leads SET next_attempt_at = 0 WHERE reason = 'no answer: connection refused (Couldn''t connect to server)'",
    );
    expect(await send(service.url)).toBe('1 delivered, 0 wait');
    expect(await send(service.url)).toBe('0 delivered, 0 wait');
    // The visitor goes back, and corrects the address.
    await website.runStatements(
      `require 'form.php';
      $form = ['name' => 'Grace H.', 'email' => 'grace.h@example.org', 'message' => '', 'key' => 'one page'];
      storeEnquiry(new PDO('sqlite:website.db'), $form);`,
    );
    expect(await sendNow(envFor(secret, service.url))).toBe('');
    expect(await send(service.url)).toBe('0 delivered, 0 wait');
    // A double click on a page without a hidden field.
    await website.runStatements(
      `require 'form.php';
      $form = ['name' => 'Eve', 'email' => 'eve@example.org', 'message' => ''];
      for ($click = 0; $click < 2; $click++) storeEnquiry(new PDO('sqlite:website.db'), $form);`,
    );
    expect(await send(service.url)).toBe('1 delivered, 0 wait');

    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([
      { displayName: 'Eve' },
      { displayName: 'Grace H.', note: null },
      { displayName: 'Grace', note: 'Zoë 😀' },
    ]);
    expect(await service.countLeads(studioId)).toBe(3);
    expect(await website.run('leads-in-need.php')).toMatch(
      /^\S{36} refused since \S+: 400 integration_invalid_request: .*contact\.value.*\(request .+\)$/,
    );
    const rows = await onTable('SELECT state, capture FROM example_com_leads ORDER BY state');
    expect(JSON.parse(rows)).toEqual([
      ['delivered', null],
      ['delivered', null],
      ['delivered', null],
      ['refused', expect.stringContaining('nowhere')],
    ]);
  });

  // @proves page-4
  test('the page does what its README shows', async ({ onTestFinished }) => {
    const website = aCopy();
    const { secret } = await service.aStudioWithKey();
    website.write('send-leads.php', findExample(README, 'outbox-send'));
    website.write('office.php', findExample(README, 'outbox-page'));
    await website.run('send-leads.php', envFor(secret, service.url));
    await website.runStatements(
      `(new LeadIntake\\Outbox\\Outbox(new PDO('sqlite:website.db'), 'example_com_leads'))->add(['displayName' => 'Ada', 'contact' => ['type' => 'email', 'value' => 'nowhere']]);`,
    );
    await website.run('send-leads.php', envFor(secret, service.url));
    const start = async (password: string) => {
      const address = `127.0.0.1:${await freePort()}`;
      const env = { ...envFor('', service.url), LEAD_INTAKE_READ_KEY: secret, OFFICE_PASSWORD: password };
      const command = `cd '${website.folder}' && exec php -d auto_prepend_file=strict.php -S ${address}`;
      const server = watchCommands(command, env);
      onTestFinished(() => server.kill());
      const url = `http://${address}/office.php`;
      await vi.waitFor(() => fetch(url), { timeout: 60_000 });
      return { server, url };
    };
    const { server, url } = await start('of the office: ä');
    const rows = () => queryFile(join(website.folder, 'website.db'), 'SELECT * FROM example_com_leads');
    await expectPage({ url, password: 'of the office: ä', isOfClient: true, rows });
    expect(server.output()).not.toMatch(/nowhere|Ada|error|warning/i);
    const none = await start('');
    expect((await fetch(none.url, { headers: { authorization: `Basic ${btoa('office:')}` } })).status).toBe(503);
  });

  const expectNothingLost = async (website: PhpWebsite) => {
    const { secret } = await service.aStudioWithKey();
    const printed = await website.runStatements(
      `use LeadIntake\\LeadIntakeClient;
      use LeadIntake\\Outbox\\Outbox;
      $pdo = new PDO('sqlite::memory:', options: [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT,
        PDO::ATTR_CASE => PDO::CASE_UPPER,
        PDO::ATTR_ORACLE_NULLS => PDO::NULL_TO_STRING,
        PDO::ATTR_STRINGIFY_FETCHES => true,
        PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_KEY_PAIR,
      ]);
      $grace = ['displayName' => 'Grace', 'contact' => ['type' => 'email', 'value' => 'grace@example.org']];
      $outbox = new Outbox($pdo, 'example_com_leads');
      try { $outbox->add($grace); } catch (LeadIntake\\Outbox\\OutboxException $error) { echo $error->getPrevious()->getMessage(), "\\n"; }
      echo $pdo->getAttribute(PDO::ATTR_ERRMODE) === PDO::ERRMODE_SILENT ? "silent again\\n" : "changed\\n";
      $outbox->setUp();
      $key = $outbox->add($grace);
      $client = new LeadIntakeClient(getenv('LEAD_INTAKE_URL'), getenv('LEAD_INTAKE_KEY'));
      echo json_encode($outbox->deliver($client)), "\\n";
      $entry = $outbox->newest()[0];
      var_dump($entry->idempotencyKey === $key, $entry->capture, $entry->reason, $entry->leadId !== null);`,
      { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret },
    );
    expect(printed.split('\n')).toEqual([
      expect.stringContaining('no such table'),
      'silent again',
      '{"delivered":1,"alreadyOpen":0,"refused":0,"postponed":0,"waiting":0,"stoppedBecause":null}',
      'bool(true)',
      'NULL',
      'NULL',
      'bool(true)',
    ]);
  };

  // @proves leads-24 others-13
  test('the PHP outbox loses nothing silently, whatever the settings of PDO', () => expectNothingLost(aCopy()));

  test('the suite catches a PHP outbox that ignores PDO errors in silent mode', async () => {
    const website = aCopy();
    plantInCopy(website.folder, {
      file: 'vendor/lead-intake/client/src/Outbox/PdoDatabase.php',
      find: '$this->pdo->setAttribute(\\PDO::ATTR_ERRMODE, \\PDO::ERRMODE_EXCEPTION);',
      put: '',
    });
    await expect(expectNothingLost(website)).rejects.toThrow('bool');
  });
});
