<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

use LeadIntake\Outbox\Internal\CaptureJson;

/** A lead in the outbox. */
final class Entry
{
    /**
     * @param string $idempotencyKey UUID in lower case
     * @param ?array<string, mixed> $capture the lead with the field names of the API; null once erased, or when the stored
     *     text is not a JSON object
     * @param int $attempts the number of attempts so far; those that wrote nothing and would have failed for any lead do not count
     * @param \DateTimeImmutable $createdAt when it was added, by the website's clock; UTC
     * @param \DateTimeImmutable $nextAttemptAt when it is sent next, while it waits; UTC
     * @param ?\DateTimeImmutable $settledAt when its data was erased; UTC
     * @param ?string $leadId the id of the created lead, or of the already open one if the service returned it
     * @param ?string $reason why it needs attention or, once settled, why perhaps nobody got the visitor's message; human-readable
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
        private readonly ?string $json = null,
    ) {
    }

    /**
     * Returns the data as an object, so that {} does not become []; null when other languages may render it as other JSON.
     *
     * @internal
     */
    public function object(): ?\stdClass
    {
        return $this->json === null ? null : CaptureJson::portable($this->json);
    }
}
