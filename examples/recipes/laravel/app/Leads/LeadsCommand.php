<?php

declare(strict_types=1);

namespace App\Leads;

use Illuminate\Console\Command;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Outbox;

final class LeadsCommand extends Command
{
    protected $signature = 'leads {what : send, report, retry or discard} {key? : the key of a lead, for retry and discard}';

    protected $description = 'Sends stored leads, prints those that need attention, sends one again or erases it';

    public function handle(Outbox $outbox): int
    {
        $key = (string) $this->argument('key');
        match ($this->argument('what')) {
            'send' => $outbox->deliver($this->laravel->make(LeadIntakeClient::class)),
            'report' => $this->report($outbox),
            'retry' => $outbox->retry($key),
            'discard' => $outbox->discard($key),
            default => throw new \InvalidArgumentException('send, report, retry or discard?'),
        };
        return self::SUCCESS;
    }

    /** Prints the leads that need attention, with the visitors' messages; nothing when there are none. */
    private function report(Outbox $outbox): void
    {
        $needy = $outbox->needsAttention();
        foreach ($needy->entries as $entry) {
            $this->line("$entry->idempotencyKey, {$entry->state->value}: $entry->reason");
            $this->line('  ' . json_encode($entry->capture, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES));
        }
        if ($needy->count > count($needy->entries)) {
            $this->line("and more: $needy->count in all");
        }
    }
}
