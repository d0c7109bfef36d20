<?php

declare(strict_types=1);

namespace LeadIntake;

/** A page of leads, newest first. */
final class LeadList
{
    /**
     * @param list<Lead> $leads
     * @param ?string $nextCursor pass it unchanged as `cursor` to get the next page; null on the last page
     */
    public function __construct(public readonly array $leads, public readonly ?string $nextCursor)
    {
    }
}
