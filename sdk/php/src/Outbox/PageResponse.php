<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/** A response of OutboxPage, to be sent as it is. */
final class PageResponse
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body,
    ) {
    }
}
