<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** A transport that can end a request before it is answered. Other transports let a call end only between its attempts. */
interface CancellableTransport extends Transport
{
    /**
     * Sends a request as send() does, and asks during the transfer, about once a second or more often, whether to end it.
     *
     * @param \Closure(): bool $isCancelled
     * @param array<string, string> $headers
     *
     * @throws TransportException as send() does, and when the request was ended
     */
    public function sendUnless(
        \Closure $isCancelled,
        string $method,
        string $url,
        array $headers,
        string $body,
        float $timeoutSeconds,
    ): Response;
}
