<?php

declare(strict_types=1);

namespace LeadIntake;

/** The lead created by this request, or by an earlier one with the same idempotency key. */
final class CreatedLead
{
    /**
     * @param Lead $lead the lead as it was when created
     * @param bool $replayed whether an earlier request had created it
     * @param int $attempts the number of times the request was sent; if 1, and $replayed is true, another call had created it
     */
    public function __construct(
        #[\SensitiveParameter] public readonly Lead $lead,
        public readonly bool $replayed,
        public readonly string $idempotencyKey,
        public readonly int $attempts,
    ) {
    }
}
