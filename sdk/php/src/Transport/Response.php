<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** An HTTP response. */
final class Response
{
    /** The maximum body size that a transport reads; far more than the service's longest response. */
    public const MAX_BYTES = 4 * 1024 * 1024;

    /** @param array<string, string> $headers by lower-case name */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        #[\SensitiveParameter] public readonly string $body,
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
