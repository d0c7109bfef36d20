<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Transport\Response;

/**
 * A request, identical in all attempts, and how its response is read.
 *
 * @internal
 * @template T
 */
final class Call
{
    /**
     * @param array<string, string> $headers
     * @param \Closure(array<mixed>, Response, int): T $read gets the number of attempts, too; throws a TypeError or an
     *     exception when the response is not in the service's form
     * @param ?string $idempotencyKey null for reads
     */
    public function __construct(
        public readonly string $method,
        public readonly string $url,
        #[\SensitiveParameter] public readonly array $headers,
        private readonly \Closure $read,
        #[\SensitiveParameter] public readonly string $body = '',
        public readonly ?string $idempotencyKey = null,
    ) {
    }

    /** @return T|Failure the result of an attempt; a response not in the service's form counts as no response */
    public function outcomeOf(#[\SensitiveParameter] Response $response, int $attempts): mixed
    {
        [$mediaType] = explode(';', $response->header('content-type'));
        $mediaType = strtolower(trim($mediaType));
        try {
            $json = json_decode($response->body, true, flags: JSON_THROW_ON_ERROR);
            if ($response->isSuccess() && $mediaType === 'application/json') {
                return ($this->read)($json, $response, $attempts);
            }
            if ($response->status >= 400 && $mediaType === 'application/problem+json') {
                return Problem::of($json, $response);
            }
        } catch (\JsonException) {
            if (str_contains($mediaType, 'json') && Encoding::of($response) !== null) {
                return Silence::inEncoding($response);
            }
        } catch (\Exception | \TypeError) {
            // Not in the service's form.
        }
        return Silence::of($response);
    }
}
