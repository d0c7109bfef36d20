import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { newKeySecret } from '../../common/rules/key-secret.ts';
import { PHP_OUTBOX_BUGS } from '../planted-bugs/php-client-bugs.ts';
import { plantInCopy } from '../planted-bugs/plant-in-copy.ts';
import { describeWithTools, exampleOf } from '../support/examples.ts';
import { aPhpWebsite, GUZZLE, PHP_TOOLS, type PhpWebsite } from '../support/php-website.ts';
import { sharedFolder } from '../support/processes.ts';
import { aService } from '../support/service.ts';

// Installing the package takes a while on a busy machine.
vi.setConfig({ hookTimeout: 120_000, testTimeout: 60_000 });

const service = aService();

const README = 'sdk/php/README.md';

const UUID_V8 = /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;

/** The beginning of the programs of a website with an outbox. */
const WITH_OUTBOX = `use LeadIntake\\{Contact, LeadCapture, LeadIntakeClient};
  use LeadIntake\\Outbox\\{Database, Dialect, Outbox, OutboxException, PdoDatabase};
  use LeadIntake\\Transport\\{CurlTransport, Psr18Transport, Response, Transport, TransportException};
  $pdo = new PDO('sqlite:website.db', options: [PDO::ATTR_TIMEOUT => 10]);
  $outbox = new Outbox($pdo, 'example_com_leads');
  $outbox->setUp();
  function lead(string $name): LeadCapture { return new LeadCapture($name, Contact::phone('12345')); }
  function show(mixed $what): void { echo json_encode($what), "\\n"; }
`;

/** Expectations of the outbox for PHP beyond those of all outboxes (`test/outbox`). Each runs on a separate website. */
const EXPECTATIONS: Readonly<Record<string, (website: PhpWebsite) => Promise<void>>> = {
  async 'does what its README shows: stores, sends, and lists what needs attention'(website) {
    const { secret, studioId } = await service.aStudioWithKey();
    const send = (url: string) => website.run('send-leads.php', { LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret });
    const onTable = (sql: string) =>
      website.runStatements(
        `echo json_encode((new PDO('sqlite:website.db'))->query("${sql}")->fetchAll(PDO::FETCH_NUM));`,
      );
    website.write('form.php', exampleOf(README, 'outbox-form'));
    website.write('send-leads.php', exampleOf(README, 'outbox-send'));
    website.write('leads-in-need.php', exampleOf(README, 'outbox-attention'));
    // The form creates the table: a visitor may come before the cron job has run.
    await website.runStatements(
      `require 'form.php';
      $website = new PDO('sqlite:website.db');
      $form = ['name' => 'Grace', 'email' => 'grace@example.org', 'message' => 'Zoë 😀', 'key' => 'one page'];
      storeEnquiry($website, $form);
      storeEnquiry($website, $form);`,
    );
    // Nothing listens there.
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
      "UPDATE example_com_leads SET next_attempt_at = 0 WHERE reason = 'no answer: Couldn''t connect to server'",
    );
    expect(await send(service.url)).toBe('1 delivered, 0 wait');
    expect(await send(service.url)).toBe('0 delivered, 0 wait');
    // The visitor goes back, and corrects the address.
    await website.runStatements(
      `require 'form.php';
      $form = ['name' => 'Grace H.', 'email' => 'grace.h@example.org', 'message' => '', 'key' => 'one page'];
      storeEnquiry(new PDO('sqlite:website.db'), $form);`,
    );
    expect(await send(service.url)).toBe('1 delivered, 0 wait');

    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([
      { displayName: 'Grace H.', note: null },
      { displayName: 'Grace', note: 'Zoë 😀' },
    ]);
    expect(await service.countLeads(studioId)).toBe(2);
    expect(await website.run('leads-in-need.php')).toMatch(
      /^\S{36} refused since \S+: 400 integration_invalid_request: .*contact\.value.*\(request .+\)$/,
    );
    const rows = await onTable('SELECT state, capture FROM example_com_leads ORDER BY state');
    expect(JSON.parse(rows)).toEqual([
      ['delivered', null],
      ['delivered', null],
      ['refused', expect.stringContaining('nowhere')],
    ]);
  },

  async 'loses nothing silently, whatever the settings of PDO'(website) {
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
      try { $outbox->add($grace); } catch (PDOException $error) { echo $error->getMessage(), "\\n"; }
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
  },

  async 'refuses invalid calls before anything is written'(website) {
    const printed = await website.runStatements(
      `use LeadIntake\\{Contact, LeadCapture, LeadIntakeClient};
      use LeadIntake\\Outbox\\Outbox;
      $pdo = new PDO('sqlite::memory:');
      $outbox = new Outbox($pdo, 'example_com_leads');
      $outbox->setUp();
      $ada = new LeadCapture('Ada', Contact::phone('12345'));
      $key = $outbox->add($ada);
      $client = new LeadIntakeClient('http://127.0.0.1:1', '${newKeySecret()}', deadlineSeconds: 1);
      $pdo->beginTransaction();
      $refused = [
        fn () => new Outbox($pdo, 'leads; DROP TABLE leads'),
        fn () => new Outbox($pdo, str_repeat('a', 64)),
        fn () => $outbox->add(new LeadCapture("\\xff", Contact::phone('12345'))),
        fn () => $outbox->add([]),
        fn () => $outbox->add(['note' => str_repeat('x', 65_536)]),
        fn () => $outbox->add($ada, '5f0f9b1c6c1e4c559a5e3d2b7f1c8a10'),
        fn () => $outbox->add(new LeadCapture('Eve', Contact::phone('12345')), $key),
        fn () => $outbox->deliver($client),
        fn () => $outbox->setUp(),
        fn () => $outbox->needsAttention(0),
        fn () => $outbox->retry('${randomUUID()}'),
      ];
      foreach ($refused as $each) {
        try {
          $each();
        } catch (InvalidArgumentException | LogicException | LeadIntake\\Outbox\\OutboxException $error) {
          echo str_replace($key, 'KEY', preg_replace('/key [0-9a-f-]{36}$/', 'key …', $error->getMessage())), "\\n";
        }
      }
      echo count($outbox->newest());`,
    );
    expect(printed.split('\n')).toEqual([
      'the name of a table must have 1 to 63 ASCII letters, digits and _',
      'the name of a table must have 1 to 63 ASCII letters, digits and _',
      'the lead cannot be stored: Malformed UTF-8 characters, possibly incorrectly encoded',
      'the lead cannot be stored: it has no named fields',
      'the lead cannot be stored: as JSON it has more than 65535 bytes',
      'the idempotency key must be a UUID with hyphens',
      'the idempotency key KEY is stored with other data: a new lead needs a new key',
      'a transaction is open on this connection, or it does not commit by itself',
      'a transaction is open on this connection, or it does not commit by itself',
      'limit must be 1 or more',
      'no lead with data has the idempotency key …',
      '1',
    ]);
  },

  async 'derives one key from a typed lead and from an array, and none from an empty form key'(website) {
    const printed = await website.runStatements(
      `${WITH_OUTBOX}
      $now = new DateTimeImmutable();
      show([
        Outbox::keyFor('page', new LeadCapture('Ada', Contact::phone('12345'), sourceId: '', note: " \\r\\n"), $now),
        Outbox::keyFor('page', ['contact' => ['value' => '12345', 'type' => 'phone'], 'displayName' => 'Ada'], $now),
        Outbox::keyFor('page', ['displayName' => 'Ada', 'contact' => Contact::phone('12345')], $now),
      ]);
      try { Outbox::keyFor('', lead('Ada')); } catch (InvalidArgumentException $error) { echo $error->getMessage(); }`,
    );
    const [keys = '', refused] = printed.split('\n');
    expect(JSON.parse(keys)).toEqual(Array(3).fill(expect.stringMatching(UUID_V8)));
    expect(new Set(JSON.parse(keys)).size).toBe(1);
    expect(refused).toMatch(/must not be empty/);
  },

  async 'limits the length of a response'(website) {
    const endless = createServer((_, response) => {
      response.writeHead(201, { 'content-type': 'application/json' }).write('{"lead":{');
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(65_536)));
      };
      response.on('drain', more);
      more();
    }).listen(0, '127.0.0.1');
    await once(endless, 'listening');
    const printed = await website
      .runStatements(
        `${WITH_OUTBOX}
        require '${GUZZLE}';
        $factory = new GuzzleHttp\\Psr7\\HttpFactory();
        $streaming = new GuzzleHttp\\Client(['stream' => true]);
        foreach ([new CurlTransport(), new Psr18Transport($streaming, $factory, $factory)] as $transport) {
          try {
            $transport->send('GET', getenv('LEAD_INTAKE_URL'), [], '', 30.0);
          } catch (TransportException $error) {
            show([$error->getMessage(), $error->mayHaveArrived]);
          }
        }`,
        { LEAD_INTAKE_URL: `http://127.0.0.1:${(endless.address() as AddressInfo).port}` },
        ['-d', 'memory_limit=64M'],
      )
      .finally(() => endless.close());
    const failure = '["the answer is longer than 4 MiB",true]';
    expect(printed.split('\n')).toEqual([failure, failure]);
  },

  async 'continues with the other leads when one throws, and throws at the end'(website) {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await website.runStatements(
      `${WITH_OUTBOX}
      class Failing implements Transport {
        public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response {
          return str_contains($body, 'Ada')
            ? throw new LogicException('Ada has a secret')
            : (new CurlTransport())->send($method, $url, $headers, $body, $timeoutSeconds);
        }
      }
      foreach (['Ada', 'Eve', 'Grace'] as $name) $outbox->add(lead($name));
      $pdo->exec("UPDATE example_com_leads SET idempotency_key = 'ä' WHERE capture LIKE '%Eve%'");
      $client = new LeadIntakeClient(getenv('LEAD_INTAKE_URL'), getenv('LEAD_INTAKE_KEY'), transport: new Failing());
      try { $outbox->deliver($client); } catch (OutboxException $error) { show($error->getPrevious() !== null); }
      $select = 'SELECT state, reason FROM example_com_leads ORDER BY reason';
      show($pdo->query($select)->fetchAll(PDO::FETCH_NUM));
      foreach (['ä', 'A'] as $key) {
        $pdo->exec("UPDATE example_com_leads SET idempotency_key = '$key' WHERE capture LIKE '%Eve%'");
        $outbox->retry($key);
      }
      $outbox->discard('A');
      $outbox->discard('A');
      show($pdo->query("SELECT state FROM example_com_leads WHERE idempotency_key = 'A'")->fetchColumn());`,
      { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret },
    );
    expect(printed.split('\n').map((line) => JSON.parse(line))).toEqual([
      true,
      [
        ['delivered', null],
        ['waiting', 'InvalidArgumentException'],
        ['waiting', 'LogicException'],
      ],
      'discarded',
    ]);
    expect(await service.countLeads(studioId)).toBe(1);
  },

  async 'ends a pass at the time limit of a job, wherever it comes'(website) {
    const { secret, studioId } = await service.aStudioWithKey();
    const printed = await website.runStatements(
      `${WITH_OUTBOX}
      pcntl_async_signals(true);
      pcntl_signal(SIGALRM, function () {
        throw new LogicException('over');
      });
      class Interrupted implements Transport {
        public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response {
          posix_kill(posix_getpid(), SIGALRM);
        }
      }
      $interrupt = fn () => posix_kill(posix_getpid(), SIGALRM);
      foreach ([null, new Interrupted()] as $transport) {
        $outbox->add(lead('Ada'));
        $client = new LeadIntakeClient(getenv('LEAD_INTAKE_URL'), getenv('LEAD_INTAKE_KEY'), transport: $transport);
        try { $outbox->deliver($client, onSettled: $interrupt); } catch (LogicException $error) { show($error->getMessage()); }
      }
      show($pdo->query('SELECT state, attempts, reason FROM example_com_leads')->fetchAll(PDO::FETCH_NUM));`,
      { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret },
    );
    const waits = ['waiting', 1, null];
    expect(printed.split('\n').map((line) => JSON.parse(line))).toEqual(['over', 'over', [waits, waits]]);
    expect(await service.countLeads(studioId)).toBe(1);
  },

  async 'lists rows whatever their times, and reports rows that it cannot read'(website) {
    const printed = await website.runStatements(
      `${WITH_OUTBOX}
      $outbox->add(lead('Ada'));
      show($outbox->needsAttention()->count);
      $inTwoDays = (time() + 2 * 86_400) * 1000;
      foreach ([$inTwoDays, '-1', '1e300', '-1e300', PHP_INT_MAX, PHP_INT_MIN] as $time) {
        $pdo->exec("UPDATE example_com_leads SET created_at = $time, settled_at = $time");
        $attention = $outbox->needsAttention();
        show([$attention->count, $attention->entries[0]->createdAt->format('Y-m-d') !== '']);
        $outbox->newest();
      }
      class Prefixing implements Database {
        public function __construct(private PdoDatabase $database) {}
        public function dialect(): Dialect { return Dialect::SQLite; }
        public function execute(string $sql, array $parameters = []): int { return $this->database->execute($sql, $parameters); }
        public function isInTransaction(): bool { return false; }
        public function query(string $sql, array $parameters = []): array {
          $prefixed = fn (array $row) => array_combine(array_map(fn ($name) => "t.$name", array_keys($row)), $row);
          return array_map($prefixed, $this->database->query($sql, $parameters));
        }
      }
      try {
        (new Outbox(new Prefixing(new PdoDatabase($pdo)), 'example_com_leads'))->newest();
      } catch (UnexpectedValueException $error) {
        show($error->getMessage());
      }`,
    );
    const [before, ...others] = printed.split('\n').map((line) => JSON.parse(line));
    expect(before).toBe(0);
    expect(others).toEqual([
      ...Array(6).fill([1, true]),
      'the database connection returns rows without a string idempotency_key',
    ]);
  },
};

// @proves leads-24
describeWithTools(PHP_TOOLS, 'the outbox for PHP', () => {
  const scratch = sharedFolder();
  let installed: PhpWebsite;
  beforeAll(async () => {
    installed = await aPhpWebsite(scratch());
  });
  const aWebsite = () => installed.copy(join(scratch(), randomUUID()));

  // @proves others-13 others-14 others-15
  test.for(Object.entries(EXPECTATIONS))('%s', ([, expectation]) => expectation(aWebsite()));

  test.for(PHP_OUTBOX_BUGS)('is caught when it is faulty: $name', async ({ patches, caughtBy, says }) => {
    const website = aWebsite();
    for (const { file, ...patch } of patches) {
      const copy = file.replace('sdk/php', 'vendor/lead-intake/client');
      plantInCopy(website.folder, { ...patch, file: copy });
    }
    await expect(EXPECTATIONS[caughtBy]?.(website)).rejects.toThrow(says);
  });
});
