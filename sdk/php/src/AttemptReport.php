<?php

declare(strict_types=1);

namespace LeadIntake;

/** A report on one attempt, without keys and personal data. */
final class AttemptReport
{
    /**
     * @param int $attempt 1 for the first attempt of a request
     * @param ?string $failure such as `429 integration_rate_limited`, `502, not of the service` or `no answer`; null: none
     * @param ?string $requestId the id of the attempt in the service's logs
     * @param ?int $quotaRemaining the number of requests that the quota still allows in its window
     * @param ?float $retryInSeconds the delay before the next attempt; null: there is none
     */
    public function __construct(
        public readonly int $attempt,
        public readonly ?string $failure,
        public readonly ?string $requestId,
        public readonly ?int $quotaRemaining,
        public readonly ?float $retryInSeconds,
    ) {
    }
}
