<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** A summary of waiting leads, such as those that have waited for more than a day. Has no personal data. */
final class WaitingLeads
{
    /**
     * @param \DateTimeImmutable $oldest when the oldest of them was stored, by the website's clock; UTC
     * @param array<string, int> $reasons how many wait for which reason, such as `401 integration_key_invalid`; most frequent
     *     first, at most 20
     */
    public function __construct(
        public readonly int $count,
        public readonly \DateTimeImmutable $oldest,
        public readonly array $reasons,
    ) {
    }
}
