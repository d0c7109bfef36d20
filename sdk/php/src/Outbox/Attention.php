<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** Leads that need a person's attention. */
final class Attention
{
    /**
     * @param int $count their total number
     * @param list<Entry> $entries the oldest of them
     */
    public function __construct(public readonly int $count, public readonly array $entries)
    {
    }
}
