<?php

declare(strict_types=1);

namespace LeadIntake;

use LeadIntake\Transport\Response;

/** The remaining quota of the key or of its studio, whichever will be used up first. */
final class Quota
{
    /**
     * @param int $limit the number of requests in a window
     * @param int $remaining how many of them are left
     * @param int $endsInSeconds the time until the window ends
     */
    public function __construct(
        public readonly int $limit,
        public readonly int $remaining,
        public readonly int $endsInSeconds,
    ) {
    }

    /** @internal Reads the headers `RateLimit-Policy` and `RateLimit`; null when one is missing. */
    public static function in(#[\SensitiveParameter] Response $response): ?self
    {
        return preg_match('/; *q=(\d+)/', $response->header('ratelimit-policy') ?? '', $policy)
            && preg_match('/; *r=(\d+); *t=(\d+)/', $response->header('ratelimit') ?? '', $left)
            ? new self((int) $policy[1], (int) $left[1], (int) $left[2])
            : null;
    }
}
