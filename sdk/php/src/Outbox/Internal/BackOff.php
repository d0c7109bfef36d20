<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

/**
 * The backoff between attempts to send a lead.
 *
 * @internal
 */
final class BackOff
{
    private const FIRST_MS = 30_000;
    private const MAX_MS = 3_600_000;

    /** The maximum wait, even when the service asks for a longer one. */
    private const MAX_OF_ALL_MS = 24 * 3_600_000;

    /** Doubles with each attempt, minus a random jitter of up to a half, and is never shorter than Retry-After. */
    public static function afterMs(int $attempts, ?int $retryAfterSeconds): int
    {
        $longest = min(self::MAX_MS, self::FIRST_MS * 2 ** ($attempts - 1));
        $backOff = $longest * (1 - mt_rand() / mt_getrandmax() / 2);
        return (int) min(self::MAX_OF_ALL_MS, max($backOff, ($retryAfterSeconds ?? 0) * 1000));
    }

    /** The wait that the service has asked for; the first backoff when it has not. */
    public static function pauseMs(?int $retryAfterSeconds): int
    {
        return (int) min(self::MAX_OF_ALL_MS, $retryAfterSeconds === null ? self::FIRST_MS : $retryAfterSeconds * 1000);
    }
}
