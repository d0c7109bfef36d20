<?php

declare(strict_types=1);

namespace LeadIntake;

/** A phone number or email address. */
final class Contact implements \JsonSerializable
{
    private function __construct(public readonly string $type, #[\SensitiveParameter] public readonly string $value)
    {
    }

    /** An email address, of up to 254 characters. */
    public static function email(#[\SensitiveParameter] string $value): self
    {
        return new self('email', $value);
    }

    /** A phone number as people type it, of 5 to 64 characters, with at least 3 digits. */
    public static function phone(#[\SensitiveParameter] string $value): self
    {
        return new self('phone', $value);
    }

    /** @return array<string, string> the contact in the form of the API */
    public function jsonSerialize(): array
    {
        return ['type' => $this->type, 'value' => $this->value];
    }
}
