<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** What was answered. */
final class Response
{
    /** The longest body that a transport reads; no answer of the service comes near. */
    public const MAX_BYTES = 4 * 1024 * 1024;

    /** @param array<string, string> $headers by their names in lower case */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body,
    ) {
    }

    public function header(string $name): string
    {
        return $this->headers[$name] ?? '';
    }

    public function isSuccess(): bool
    {
        return $this->status >= 200 && $this->status < 300;
    }
}
