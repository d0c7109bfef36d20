<?php

declare(strict_types=1);

namespace LeadIntake;

/** A lead that there is now, because of this creation or of an earlier one with the same key. */
final class CreatedLead
{
    /**
     * @param Lead $lead as it was created
     * @param bool $replayed whether an earlier attempt had created it
     */
    public function __construct(
        public readonly Lead $lead,
        public readonly bool $replayed,
        public readonly string $idempotencyKey,
    ) {
    }
}
