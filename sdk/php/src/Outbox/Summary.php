<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** What a pass over the outbox has done. */
final class Summary
{
    /**
     * @param int $delivered leads that the service has now
     * @param int $alreadyOpen leads whose contact had an open one
     * @param int $refused leads that need a person
     * @param int $postponed leads that are sent again later
     * @param int $waiting all that wait now, those postponed and those of other passes as well
     * @param ?string $stoppedBecause why the pass has ended before it was through; null: it was through
     */
    public function __construct(
        public readonly int $delivered,
        public readonly int $alreadyOpen,
        public readonly int $refused,
        public readonly int $postponed,
        public readonly int $waiting,
        public readonly ?string $stoppedBecause,
    ) {
    }
}
