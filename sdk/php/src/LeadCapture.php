<?php

declare(strict_types=1);

namespace LeadIntake;

/** A lead to be created. */
final class LeadCapture implements \JsonSerializable
{
    /**
     * @param string $displayName name of the person, of 1 to 160 characters
     * @param ?string $sourceId an enabled lead source of the key's studio, or null
     * @param ?string $note the visitor's message or other remarks, 1 to 2,000 characters, or null
     */
    public function __construct(
        public readonly string $displayName,
        public readonly Contact $contact,
        public readonly ?string $sourceId = null,
        public readonly ?string $note = null,
    ) {
    }

    /** @return array<string, mixed> the lead in the form of the API */
    public function jsonSerialize(): array
    {
        return array_filter(get_object_vars($this), static fn (mixed $value): bool => $value !== null);
    }
}
