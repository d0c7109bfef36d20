<?php

declare(strict_types=1);

namespace LeadIntake;

/**
 * A lead; its contact is in no answer. What an answer leaves out, which those of the service never do, is an empty text, or
 * null for a time.
 */
final class Lead
{
    /**
     * @param string $id UUID
     * @param string $stage where the lead stands: a value of LeadStage; the service may come to know others
     * @param \DateTimeImmutable $createdAt when the lead was created; UTC
     * @param \DateTimeImmutable $updatedAt when the lead was last changed; UTC
     */
    public function __construct(
        public readonly string $id,
        public readonly string $displayName,
        public readonly string $stage,
        public readonly ?string $sourceId,
        public readonly ?string $note,
        public readonly ?\DateTimeImmutable $createdAt,
        public readonly ?\DateTimeImmutable $updatedAt,
    ) {
    }
}
