import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { PHP_OUTBOX_BUGS } from '../planted-bugs/php-client-bugs.ts';
import { plantInCopy } from '../planted-bugs/plant-in-copy.ts';
import { describeWithTools, exampleOf } from '../support/examples.ts';
import { aPhpWebsite, PHP_TOOLS, type PhpWebsite } from '../support/php-website.ts';
import { aService } from '../support/service.ts';

// A machine that is busy installs the package.
vi.setConfig({ hookTimeout: 120_000, testTimeout: 60_000 });

const service = aService();

const README = 'sdk/php/README.md';

/** What the outbox for PHP must do, beside what all outboxes must (`test/outbox`). Each gets a website of its own. */
const EXPECTATIONS: Readonly<Record<string, (website: PhpWebsite) => Promise<void>>> = {
  async 'does what its README shows: stores, sends, and tells what needs a person'(website) {
    const { secret, studioId } = await service.aStudioWithKey();
    const [grace, nobody] = [randomUUID(), randomUUID()];
    const send = (url: string) => website.run('send-leads.php', { LEAD_INTAKE_URL: url, LEAD_INTAKE_KEY: secret });
    const onTable = (sql: string) =>
      website.runStatements(
        `echo json_encode((new PDO('sqlite:website.db'))->query("${sql}")->fetchAll(PDO::FETCH_NUM));`,
      );
    website.write('form.php', exampleOf(README, 'outbox-form'));
    website.write('send-leads.php', exampleOf(README, 'outbox-send'));
    website.write('leads-in-need.php', exampleOf(README, 'outbox-attention'));
    expect(await send(service.url)).toBe('0 delivered, 0 wait');

    await website.runStatements(
      `require 'form.php';
      $website = new PDO('sqlite:website.db');
      $form = ['name' => 'Grace', 'email' => 'grace@example.org', 'message' => 'Zoë 😀', 'key' => '${grace}'];
      storeEnquiry($website, $form);
      storeEnquiry($website, $form);`,
    );
    // Nobody listens there.
    expect(await send('http://127.0.0.1:1')).toBe('0 delivered, 1 wait');
    await website.runStatements(
      `require 'form.php';
      $form = ['name' => 'Nobody', 'email' => 'nowhere', 'message' => 'Psst', 'key' => '${nobody}'];
      storeEnquiry(new PDO('sqlite:website.db'), $form);`,
    );
    await onTable(
      "UPDATE lead_intake_outbox SET next_attempt_at = 0 WHERE reason = 'no answer: Couldn''t connect to server'",
    );
    expect(await send(service.url)).toBe('1 delivered, 0 wait');
    expect(await send(service.url)).toBe('0 delivered, 0 wait');

    const { leads } = (await (await service.get(secret)).json()) as { leads: object[] };
    expect(leads).toMatchObject([{ displayName: 'Grace', note: 'Zoë 😀' }]);
    expect(await service.countLeads(studioId)).toBe(1);
    expect(await website.run('leads-in-need.php')).toMatch(
      new RegExp(
        `^${nobody} refused since \\S+: 400 integration_invalid_request: .*contact\\.value.*\\(request .+\\)$`,
      ),
    );
    const rows = await onTable('SELECT state, capture FROM lead_intake_outbox ORDER BY state');
    expect(JSON.parse(rows)).toEqual([
      ['delivered', null],
      ['refused', expect.stringContaining('nowhere')],
    ]);
  },

  async 'loses nothing silently, however PDO is set'(website) {
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
      $outbox = new Outbox($pdo);
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

  async 'refuses what it cannot do, before anything is written'(website) {
    const printed = await website.runStatements(
      `use LeadIntake\\{Contact, LeadCapture, LeadIntakeClient};
      use LeadIntake\\Outbox\\Outbox;
      $pdo = new PDO('sqlite::memory:');
      $outbox = new Outbox($pdo);
      $outbox->setUp();
      $ada = new LeadCapture('Ada', Contact::phone('12345'));
      $key = $outbox->add($ada);
      $client = new LeadIntakeClient('http://127.0.0.1:1', 'lik_any', deadlineSeconds: 1);
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
          echo str_replace($key, 'KEY', preg_replace('/key [0-9a-f-]{36} was/', 'key … was', $error->getMessage())), "\\n";
        }
      }
      echo count($outbox->newest());`,
    );
    expect(printed.split('\n')).toEqual([
      'the name of a table has up to 63 letters of ASCII, digits and _',
      'the name of a table has up to 63 letters of ASCII, digits and _',
      'the lead cannot be stored: Malformed UTF-8 characters, possibly incorrectly encoded',
      'the lead cannot be stored: it has no named fields',
      'the lead cannot be stored: as JSON it has more than 65535 bytes',
      'the idempotency key must be a UUID with hyphens',
      'other data wait under the idempotency key KEY: a new lead needs a new key',
      'a transaction is open on this connection, or it does not commit by itself',
      'a transaction is open on this connection, or it does not commit by itself',
      'limit must be 1 or more',
      'no lead with the idempotency key … was refused or waits',
      '1',
    ]);
  },
};

describeWithTools(PHP_TOOLS, 'the outbox for PHP', () => {
  let scratch: string;
  let installed: PhpWebsite;
  afterAll(() => rmSync(scratch, { recursive: true }));
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
    installed = await aPhpWebsite(scratch);
  });
  const aWebsite = () => installed.copy(join(scratch, randomUUID()));

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
