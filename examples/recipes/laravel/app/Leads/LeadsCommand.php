<?php

declare(strict_types=1);

namespace App\Leads;

use Illuminate\Console\Command;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Outbox;

final class LeadsCommand extends Command
{
    protected $signature = 'leads {what : send, report or discard} {key? : of a lead that somebody has read}';

    protected $description = 'Sends stored leads, prints those that need somebody, or erases one';

    public function handle(Outbox $outbox): int
    {
        return match ($this->argument('what')) {
            'send' => $this->send($outbox),
            'report' => $this->report($outbox),
            'discard' => $this->discard($outbox),
            default => throw new \InvalidArgumentException('send, report or discard?'),
        };
    }

    private function send(Outbox $outbox): int
    {
        $outbox->deliver($this->laravel->make(LeadIntakeClient::class));
        return self::SUCCESS;
    }

    /** Prints what needs somebody with all that the visitor wrote, and nothing when there is none. */
    private function report(Outbox $outbox): int
    {
        $needy = $outbox->needsAttention();
        foreach ($needy->entries as $entry) {
            $this->line("$entry->idempotencyKey, {$entry->state->value}: $entry->reason");
            $this->line('  ' . json_encode($entry->capture, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES));
        }
        if ($needy->count > count($needy->entries)) {
            $this->line("and more: $needy->count in all");
        }
        return self::SUCCESS;
    }

    private function discard(Outbox $outbox): int
    {
        $outbox->discard((string) $this->argument('key'));
        return self::SUCCESS;
    }
}
