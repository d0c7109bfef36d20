<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Transport\Response;

/**
 * A request, the same in all attempts, and what is made of its answer.
 *
 * @internal
 * @template T
 */
final class Call
{
    /**
     * @param array<string, string> $headers
     * @param \Closure(array<mixed>, Response): T $read throws a TypeError or an
     *     exception at what the service would not answer
     * @param ?string $idempotencyKey null for requests that read
     */
    public function __construct(
        public readonly string $method,
        public readonly string $url,
        public readonly array $headers,
        private readonly \Closure $read,
        public readonly string $body = '',
        public readonly ?string $idempotencyKey = null,
    ) {
    }

    /** @return T|Failure what was asked for; what the service would not answer is not from the service */
    public function outcomeOf(Response $response): mixed
    {
        [$mediaType] = explode(';', $response->header('content-type'));
        $mediaType = strtolower(trim($mediaType));
        try {
            $json = json_decode($response->body, true, flags: JSON_THROW_ON_ERROR);
            if ($response->isSuccess() && $mediaType === 'application/json') {
                return ($this->read)($json, $response);
            }
            if ($response->status >= 400 && $mediaType === 'application/problem+json') {
                return Problem::of($json, $response);
            }
        } catch (\Exception | \TypeError) {
            // Not JSON, or not what the service makes of it.
        }
        return Silence::of($response);
    }
}
