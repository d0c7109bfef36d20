<?php

// The cron job: sends the waiting leads. It prints only when a person is needed, so that cron mails nothing else.

declare(strict_types=1);

require __DIR__ . '/website.php';

$summary = outbox()->deliver(client(deadlineSeconds: 10));
if ($summary->refused > 0 || preg_match('/^40[123] /', $summary->stoppedBecause ?? '')) {
    foreach (outbox()->needsAttention()->entries as $entry) {
        echo "$entry->idempotencyKey, from {$entry->createdAt->format('c')}, {$entry->state->value}: $entry->reason\n";
    }
}
