<?php

// The command of the cron jobs and of who looks after the website: php leads.php set-up, send, report, retry KEY, discard KEY

declare(strict_types=1);

PHP_SAPI === 'cli' || exit;

require __DIR__ . '/website.php';

[, $command, $key] = $argv + ['', '', ''];
try {
    match ($command) {
        'set-up' => setUp(),
        'send' => outbox()->deliver(client(deadlineSeconds: 10)),
        'report' => report(),
        'retry' => outbox()->retry($key),
        'discard' => outbox()->discard($key),
    };
} catch (\Throwable $error) {
    // One line, which cron mails, such as for a mistyped key; all leads stay where they are.
    fwrite(STDERR, "leads.php $command: {$error->getMessage()}\n");
    exit(1);
}

function setUp(): void
{
    database()->exec('CREATE TABLE IF NOT EXISTS enquiries (received_at BIGINT NOT NULL)');
    outbox()->setUp();
}

/** Prints the leads that need somebody, with what the visitor wrote; nothing when there are none. */
function report(): void
{
    $needy = outbox()->needsAttention();
    foreach ($needy->entries as $entry) {
        $lead = json_encode($entry->capture, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
        echo "$entry->idempotencyKey, from {$entry->createdAt->format('c')}, {$entry->state->value}: $entry->reason\n  $lead\n";
    }
    if ($needy->count > count($needy->entries)) {
        echo "and more: $needy->count in all\n";
    }
}
