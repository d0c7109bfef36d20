<?php

declare(strict_types=1);

namespace LeadIntake;

/** A page of the list, newest first. */
final class LeadList
{
    /**
     * @param list<Lead> $leads
     * @param ?string $nextCursor give it unchanged as `cursor` to get the next page; null: there is none
     */
    public function __construct(public readonly array $leads, public readonly ?string $nextCursor)
    {
    }
}
