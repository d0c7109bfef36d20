<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** Sends HTTP requests. */
interface Transport
{
    /**
     * Sends a request once, without following redirects, and returns the response whatever its status. The client decodes it, unless
     * the transport has.
     *
     * @param array<string, string> $headers
     * @param string $body the body of a POST; empty for a GET
     * @param float $timeoutSeconds the time limit; more than 0
     *
     * @throws TransportException when there is no response, or its body exceeds Response::MAX_BYTES
     */
    public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response;
}
