<?php

declare(strict_types=1);

namespace LeadIntake;

/**
 * A lead; responses never contain its contact. The service always sends every field. If a response lacks one, it is an empty
 * string here, or null for a source, a note and a time.
 */
final class Lead
{
    /**
     * @param string $id UUID
     * @param string $stage a value of LeadStage; newer services may return others
     * @param \DateTimeImmutable $createdAt when the lead was created; UTC
     * @param \DateTimeImmutable $updatedAt when the lead was last changed; UTC
     */
    public function __construct(
        public readonly string $id,
        #[\SensitiveParameter] public readonly string $displayName,
        public readonly string $stage,
        public readonly ?string $sourceId,
        #[\SensitiveParameter] public readonly ?string $note,
        public readonly ?\DateTimeImmutable $createdAt,
        public readonly ?\DateTimeImmutable $updatedAt,
    ) {
    }
}
