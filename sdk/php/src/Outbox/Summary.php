<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** The result of one pass, in numbers of leads. */
final class Summary
{
    /**
     * @param int $delivered leads delivered to the service
     * @param int $alreadyOpen leads whose contact already had an open lead
     * @param int $refused leads that the service refused; they need a person's attention
     * @param int $postponed leads tried in this pass that wait for their next attempt
     * @param int $waiting all waiting leads, due or not
     * @param ?string $stoppedBecause why the pass stopped before all due leads were tried; null when it did not
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
