<?php

declare(strict_types=1);

namespace LeadIntake;

use LeadIntake\Internal\Blank;

/** A lead to be created. */
final class LeadCapture implements \JsonSerializable
{
    /**
     * @param string $displayName name of the person, of 1 to 160 characters
     * @param ?string $sourceId an enabled lead source of the key's studio; null or blank: none
     * @param ?string $note the visitor's message or other remarks, up to 2,000 characters; null or blank: none
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
        $optional = array_filter(
            ['sourceId' => $this->sourceId, 'note' => $this->note],
            static fn (?string $value): bool => $value !== null && !Blank::is($value),
        );
        return ['displayName' => $this->displayName, 'contact' => $this->contact] + $optional;
    }
}
