<?php

declare(strict_types=1);

namespace LeadIntake\Internal;

use LeadIntake\Transport\Response;

/**
 * What an answer says of the next attempt, whoever has given it.
 *
 * @internal
 */
final class Retries
{
    /** How long the answer asks to wait; a date would be held against a clock that may be wrong. */
    public static function afterSeconds(Response $response): ?int
    {
        $value = $response->header('retry-after');
        return preg_match('/^\d+$/D', $value) ? (int) $value : null;
    }

    /** Whether a status is one that passes. */
    public static function mayHelpAfter(int $status): bool
    {
        return $status === 408 || $status === 429 || $status >= 500;
    }
}
