<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\Outcomes;
use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\WaitingLeads;

/**
 * Tells somebody what has waited for longer than a day: once a day at most, and again after an hour if that fails.
 *
 * @internal
 */
final class Waiting
{
    private const HOUR_MS = 3_600_000;
    private const DAY_MS = 24 * self::HOUR_MS;

    /** The beginnings of reasons that differ, and the reasons that somebody is told. */
    private const REASON_START = 36;
    private const MAX_REASONS = 20;

    /** @param \Closure(WaitingLeads): void $onWaiting */
    public static function tell(Database $database, string $table, \Closure $onWaiting): void
    {
        $now = Table::now();
        $memo = new Memo($database, $table, 'waiting');
        [, $token] = $memo->read();
        if (abs($now - (int) $token) < self::DAY_MS) {
            return;
        }
        // Of several workers one looks; if there is nothing, or telling it fails, again in an hour.
        $anHourOn = (string) ($now - self::DAY_MS + self::HOUR_MS);
        if (!$memo->write('', $anHourOn, $token)) {
            return;
        }
        $waiting = self::in($database, $table, $now);
        if ($waiting !== null) {
            $onWaiting($waiting);
            $memo->write('', (string) $now, $anHourOn);
        }
    }

    private static function in(Database $database, string $table, int $now): ?WaitingLeads
    {
        $rows = $database->query(
            'SELECT SUBSTR(reason, 1, ' . self::REASON_START . ') AS reason, COUNT(*) AS number, MIN(created_at) AS oldest'
            . " FROM $table WHERE " . Outcomes::SQL_WITH_DATA . ' AND (created_at < ? OR created_at > ?) GROUP BY 1',
            [$now - self::DAY_MS, $now + self::DAY_MS],
        );
        if ($rows === []) {
            return null;
        }
        $reasons = [];
        foreach ($rows as ['reason' => $reason, 'number' => $number]) {
            $start = explode(':', $reason === null || $reason === '' ? 'not tried yet' : $reason)[0];
            $reasons[$start] = ($reasons[$start] ?? 0) + (int) $number;
        }
        ksort($reasons, SORT_STRING);
        arsort($reasons);
        $oldest = Table::time(min(array_map(intval(...), array_column($rows, 'oldest'))));
        return new WaitingLeads(array_sum($reasons), $oldest, array_slice($reasons, 0, self::MAX_REASONS, true));
    }
}
