<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** What needs a person. */
final class Attention
{
    /**
     * @param int $count of all entries that need one
     * @param list<Entry> $entries the oldest of them
     */
    public function __construct(public readonly int $count, public readonly array $entries)
    {
    }
}
