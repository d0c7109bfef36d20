<?php

declare(strict_types=1);

namespace LeadIntake\Transport;

/** What sends requests. */
interface Transport
{
    /**
     * Sends a request once, follows no redirect, and gives the answer, whatever its status.
     *
     * @param array<string, string> $headers
     * @param string $body of a POST; of a GET, empty
     * @param float $timeoutSeconds when to give up; more than 0
     *
     * @throws TransportException when there is no answer, or none that ends within Response::MAX_BYTES
     */
    public function send(string $method, string $url, array $headers, string $body, float $timeoutSeconds): Response;
}
