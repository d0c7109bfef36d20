<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** A lead in the outbox. */
final class Entry
{
    /**
     * @param string $idempotencyKey UUID in lower case
     * @param ?array<string, mixed> $capture the lead in the names of the API; null once it is erased, or when what is stored
     *     is no JSON object
     * @param int $attempts how often it was taken up to be sent
     * @param \DateTimeImmutable $createdAt when it was added, by the website's clock; UTC
     * @param \DateTimeImmutable $nextAttemptAt when it is sent next, while it waits; UTC
     * @param ?\DateTimeImmutable $settledAt when it was delivered or given up; UTC
     * @param ?string $leadId of the lead delivered, or of the one that was open already where the service has told it
     * @param ?string $reason why it is not delivered, for people
     */
    public function __construct(
        public readonly string $idempotencyKey,
        public readonly ?array $capture,
        public readonly State $state,
        public readonly int $attempts,
        public readonly \DateTimeImmutable $createdAt,
        public readonly \DateTimeImmutable $nextAttemptAt,
        public readonly ?\DateTimeImmutable $settledAt,
        public readonly ?string $leadId,
        public readonly ?string $reason,
    ) {
    }
}
