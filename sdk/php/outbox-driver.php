<?php

// The driver of this outbox for the suite of all outboxes (sdk/test/outbox): one command per line of stdin.

declare(strict_types=1);

use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Dialect;
use LeadIntake\Outbox\Difference;
use LeadIntake\Outbox\Entry;
use LeadIntake\Outbox\Outbox;
use LeadIntake\Outbox\OutboxPage;
use LeadIntake\Outbox\Reconciliation;
use LeadIntake\Outbox\State;
use LeadIntake\Outbox\WaitingLeads;

// stdout has only JSON.
ini_set('display_errors', 'stderr');

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/src/' . str_replace('\\', '/', substr($class, strlen('LeadIntake\\'))) . '.php';
});

// Where stdin is a socket, a read ends after a minute without a command (default_socket_timeout).
stream_set_timeout(STDIN, 86_400);

while (($line = fgets(STDIN)) !== false) {
    printLine(reportOn(json_decode($line, true, flags: JSON_THROW_ON_ERROR)));
}

/** @param array<string, mixed> $line */
function reportOn(array $line): array
{
    try {
        return ['result' => resultOf($line['command'], $line['arguments'], $line['settings'])];
    } catch (Exception $error) {
        return ['error' => $error->getMessage()];
    }
}

/**
 * @param array<string, mixed> $arguments
 * @param array<string, mixed> $settings
 */
function resultOf(string $command, array $arguments, array $settings): object
{
    ['database' => $database, 'table' => $table] = $settings + ['table' => null];
    if ($command === 'set-up-sql') {
        return (object) ['sql' => implode(";\n", Outbox::schema(dialectOf($database['kind']), ...array_filter([$table]))) . ";\n"];
    }
    if ($command === 'keys-for') {
        return (object) ['keys' => array_map(keyFor(...), $arguments['submissions'])];
    }
    $pdo = connect($database);
    $outbox = new Outbox($pdo, $table);
    isset($arguments['before']) && $pdo->exec($arguments['before']);
    switch ($command) {
        case 'set-up':
            $outbox->setUp();
            return (object) [];
        case 'add':
            foreach ($arguments['leads'] as $lead) {
                add($pdo, $outbox, $lead);
            }
            return (object) [];
        case 'deliver':
            $listener = isset($arguments['onSettled']) ? ['onSettled' => listener($arguments['onSettled'])] : [];
            $options = array_intersect_key($arguments, ['limit' => 1, 'keepSettledDays' => 1]);
            $waiting = isset($arguments['onWaiting']) ? ['onWaiting' => tell($arguments['onWaiting'])] : [];
            return $outbox->deliver(client($settings), ...$options, ...$listener, ...$waiting);
        case 'needs-attention':
            $attention = $outbox->needsAttention(...array_intersect_key($arguments, ['limit' => 1]));
            return (object) ['count' => $attention->count, 'entries' => array_map(publicEntry(...), $attention->entries)];
        case 'retry':
            $outbox->retry($arguments['key'], $arguments['capture'] ?? null);
            return (object) [];
        case 'discard':
            $outbox->discard($arguments['key']);
            return (object) [];
        case 'reconcile':
            $options = isset($arguments['maxMs']) ? ['maxSeconds' => $arguments['maxMs'] / 1000] : [];
            $options += array_intersect_key($arguments, ['restart' => 1]);
            $printed = static fn (Difference $each) => printLine(['difference' => publicDifference($each)]);
            $options += isset($arguments['onDifference']) ? ['onDifference' => $printed] : [];
            $report = publicReport($outbox->reconcile(client($settings), ...$options));
            return (object) ($report + ['peakKiB' => intdiv(memory_get_peak_usage(true), 1024)]);
        case 'last-reconciliation':
            $last = $outbox->lastReconciliation();
            return (object) ($last === null ? [] : publicReport($last));
        case 'send-again':
            $outbox->sendAgain(client($settings), $arguments['key'], $arguments['mayCreate'] ?? false, $arguments['capture'] ?? null);
            return (object) [];
        case 'page':
            $page = new OutboxPage($outbox, match (true) {
                !($arguments['mayCompare'] ?? true) => null,
                isset($arguments['lazily']) => fn () => client($settings),
                default => client($settings),
            });
            $respond = fn (array $request) => $page->respond($request['method'], $request['headers'], ...array_values(array_intersect_key($request, ['body' => 1])));
            return (object) ['responses' => array_map($respond, $arguments['requests'])];
    }
    throw new InvalidArgumentException("no command is named $command");
}

/** @param array<string, mixed> $submission */
function keyFor(array $submission): string
{
    return Outbox::keyFor($submission['formKey'], $submission['capture'], new DateTimeImmutable($submission['at']));
}

/** @param array<string, mixed> $lead */
function add(PDO $pdo, Outbox $outbox, array $lead): void
{
    $pdo->beginTransaction();
    $capture = $lead['capture'];
    $pdo->prepare('INSERT INTO visits (note) VALUES (?)')->execute([$capture['displayName'] ?? '']);
    $end = $lead['end'] ?? 'commit';
    try {
        $key = is_array($capture)
            ? $outbox->add($capture, $lead['key'] ?? null)
            : throw new InvalidArgumentException("PHP's types do not permit it");
    } catch (Exception $error) {
        $end === 'commit-anyway' ? $pdo->commit() : throw $error;
        printLine(['refused' => $error->getMessage()]);
        return;
    }
    switch ($end) {
        case 'rollback':
            $pdo->rollBack();
            printLine(['rolledBack' => $key]);
            return;
        case 'hang':
            printLine(['hanging' => $key]);
            while (true) {
                sleep(60);
            }
    }
    $pdo->commit();
    printLine(['added' => $key]);
}

function listener(string $behaviour): Closure
{
    return static function (Entry $entry, State $outcome) use ($behaviour): void {
        $settled = ['key' => $entry->idempotencyKey, 'outcome' => $outcome, 'leadId' => $entry->leadId, 'capture' => $entry->capture];
        $settled['reason'] = $entry->reason;
        printLine(['settled' => $settled]);
        if ($behaviour === 'throw') {
            throw new RuntimeException('listener failed');
        }
    };
}

function tell(string $behaviour): Closure
{
    return static function (WaitingLeads $waiting) use ($behaviour): void {
        $reasons = [];
        foreach ($waiting->reasons as $reason => $count) {
            $reasons[] = ['reason' => $reason, 'count' => $count];
        }
        $oldest = (int) $waiting->oldest->format('Uv');
        printLine(['waits' => ['count' => $waiting->count, 'oldest' => $oldest, 'reasons' => $reasons]]);
        if ($behaviour === 'throw') {
            throw new RuntimeException('listener failed');
        }
    };
}

function publicReport(Reconciliation $report): array
{
    $changed = [
        'startedAt' => (int) $report->startedAt->format('Uv'),
        'since' => $report->since === null ? null : (int) $report->since->format('Uv'),
        'differences' => array_map(publicDifference(...), $report->differences),
    ];
    return $changed + get_object_vars($report);
}

function publicDifference(Difference $difference): array
{
    ['idempotencyKey' => $key, 'createdAt' => $createdAt] = $values = get_object_vars($difference);
    unset($values['idempotencyKey']);
    return ['key' => $key, 'createdAt' => (int) $createdAt->format('Uv')] + $values;
}

function publicEntry(Entry $entry): array
{
    return [
        'key' => $entry->idempotencyKey,
        'state' => $entry->state,
        'createdAt' => (int) $entry->createdAt->format('Uv'),
        'attempts' => $entry->attempts,
        'reason' => $entry->reason,
        'capture' => $entry->capture,
    ];
}

/** @param array<string, mixed> $settings */
function client(array $settings): LeadIntakeClient
{
    $options = [];
    foreach (['deadlineMs' => 'deadlineSeconds', 'attemptTimeoutMs' => 'attemptTimeoutSeconds'] as $name => $option) {
        if (isset($settings[$name])) {
            $options[$option] = $settings[$name] / 1000;
        }
    }
    if (isset($settings['onAttempt'])) {
        $options['onAttempt'] = static fn (): never => throw new RuntimeException('listener failed');
    }
    return new LeadIntakeClient($settings['baseUrl'], $settings['apiKey'], ...$options);
}

function dialectOf(string $kind): Dialect
{
    return match ($kind) {
        'sqlite' => Dialect::SQLite,
        'mariadb' => Dialect::MySQL,
        'postgresql' => Dialect::PostgreSQL,
    };
}

/** @param array<string, mixed> $database */
function connect(array $database): PDO
{
    if ($database['kind'] === 'sqlite') {
        return new PDO("sqlite:$database[file]", options: [PDO::ATTR_TIMEOUT => 10]);
    }
    $where = "host=$database[host];port=$database[port];dbname=$database[database]";
    return $database['kind'] === 'mariadb'
        ? new PDO("mysql:$where;charset=utf8mb4", $database['user'], $database['password'])
        : new PDO("pgsql:$where", $database['user'], $database['password']);
}

function printLine(array|object $line): void
{
    fwrite(STDOUT, json_encode($line, JSON_THROW_ON_ERROR) . "\n");
}
