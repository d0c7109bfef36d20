<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

/**
 * When a lead is sent again.
 *
 * @internal
 */
final class BackOff
{
    private const FIRST_MS = 30_000;
    private const MAX_MS = 3_600_000;

    /** However long the service asks to wait. */
    private const MAX_OF_ALL_MS = 24 * 3_600_000;

    /** Doubles with each attempt, by chance up to a half shorter, and never before the service wants the next one. */
    public static function afterMs(int $attempts, ?int $retryAfterSeconds): int
    {
        $longest = min(self::MAX_MS, self::FIRST_MS * 2 ** ($attempts - 1));
        $backOff = $longest * (1 - mt_rand() / mt_getrandmax() / 2);
        return (int) min(self::MAX_OF_ALL_MS, max($backOff, ($retryAfterSeconds ?? 0) * 1000));
    }
}
