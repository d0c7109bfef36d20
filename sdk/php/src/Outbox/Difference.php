<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** A lead of the outbox that the service does not have as the outbox says. It has no personal data. */
final class Difference
{
    /**
     * @param string $leadId the id that the service had returned
     * @param State $state of an already open one the id is that of the contact's open lead, of another creation
     * @param string $kind `not_there`: no lead with the id can be read; `other_data`: a text of it is not the one that was sent;
     *     `not_read`: not known, because the service has failed to read it
     * @param string $reason what that may mean, in one sentence
     * @param \DateTimeImmutable $createdAt when the lead was stored in the outbox, by the website's clock; UTC
     */
    public function __construct(
        public readonly string $idempotencyKey,
        public readonly string $leadId,
        public readonly State $state,
        public readonly string $kind,
        public readonly string $reason,
        public readonly \DateTimeImmutable $createdAt,
    ) {
    }
}
