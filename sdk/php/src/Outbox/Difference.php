<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** A lead that differs between the outbox and the service, or could not be read. Has no personal data. */
final class Difference
{
    /**
     * @param string $leadId the id that the service had returned
     * @param State $state if it is already open, the id is that of the contact's open lead, which another creation made
     * @param string $kind `not_there`: no lead with the id can be read; `other_data`: a text differs from the one that was sent;
     *     `not_read`: not known, because the service has failed to read it
     * @param string $reason a possible cause, in one sentence
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
