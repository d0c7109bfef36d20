<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Transport\Response;

/**
 * Tells whether and when to retry after a response from the service or a proxy.
 *
 * @internal
 */
final class Retries
{
    /** Returns the Retry-After in seconds. Dates are ignored: the local clock may be wrong. */
    public static function afterSeconds(Response $response): ?int
    {
        $value = $response->header('retry-after');
        return preg_match('/^\d+$/D', $value) ? (int) $value : null;
    }

    /** Whether a status may be temporary. */
    public static function mayHelpAfter(int $status): bool
    {
        return in_array($status, Outcomes::TEMPORARY_STATUSES, true) || $status >= Outcomes::FAILING_FROM_STATUS;
    }
}
