<?php

// The command for cron jobs and for a person: php leads.php set-up, send, report, compare, retry KEY, discard KEY

declare(strict_types=1);

PHP_SAPI === 'cli' || exit;

use LeadIntake\Outbox\WaitingLeads;

require __DIR__ . '/website.php';

[, $command, $key] = $argv + ['', '', ''];
try {
    match ($command) {
        'set-up' => setUp(),
        'send' => outbox()->deliver(client(deadlineSeconds: 10), onWaiting: tell(...)),
        'report' => report(),
        'compare' => compare(),
        'retry' => outbox()->retry($key),
        'discard' => outbox()->discard($key),
    };
} catch (\Throwable $error) {
    // Prints one line, which cron mails, for example for a mistyped key. All leads stay stored.
    fwrite(STDERR, "leads.php $command: {$error->getMessage()}\n");
    exit(1);
}

function setUp(): void
{
    database()->exec('CREATE TABLE IF NOT EXISTS enquiries (received_at BIGINT NOT NULL)');
    outbox()->setUp();
}

/** Prints the leads that have waited for more than a day, once a day, so that cron mails them. */
function tell(WaitingLeads $waiting): void
{
    echo "$waiting->count leads have waited for more than a day, the oldest since {$waiting->oldest->format('c')}\n";
    foreach ($waiting->reasons as $reason => $count) {
        echo "  $count: $reason\n";
    }
}

/** Prints whether the sent leads have arrived. */
function compare(): void
{
    $report = outbox()->reconcile(client(deadlineSeconds: 10));
    echo "$report->summary\n";
    foreach ($report->differences as $each) {
        echo "$each->idempotencyKey, from {$each->createdAt->format('c')}, lead $each->leadId: $each->reason\n";
    }
    if (count($report->differences) === 100) {
        echo "and perhaps more: these are the newest\n";
    }
}

/** Prints the leads that need attention, with the visitors' messages; nothing when there are none. */
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
