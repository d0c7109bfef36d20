<?php

declare(strict_types=1);

namespace LeadIntake;

/**
 * A lead. The API returns no contact. A field missing from the response, which the service always sends, is an empty
 * string, or null for a time.
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
