<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Internal\Outcomes;
use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\WaitingLeads;

/**
 * Summarizes waiting leads, and reports those that have waited for more than a day.
 *
 * @internal
 */
final class Waiting
{
    private const HOUR_MS = 3_600_000;
    private const DAY_MS = 24 * self::HOUR_MS;

    /** The length of a reason's beginning by which leads are counted, and the maximum number of reasons. */
    private const REASON_START = 36;
    private const MAX_REASONS = 20;

    /** Reports at most once a day, and again an hour after a failure. @param \Closure(WaitingLeads): void $onWaiting */
    public static function tell(Database $database, string $table, \Closure $onWaiting): void
    {
        $now = Table::now();
        $memo = new Memo($database, $table, 'waiting');
        [, $token] = $memo->read();
        if (abs($now - (int) $token) < self::DAY_MS) {
            return;
        }
        // One of several workers looks. It looks again in an hour if there is nothing to report or the report fails.
        $anHourOn = (string) ($now - self::DAY_MS + self::HOUR_MS);
        if (!$memo->write('', $anHourOn, $token)) {
            return;
        }
        $where = Outcomes::SQL_WITH_DATA . ' AND (created_at < ? OR created_at > ?)';
        $waiting = self::in($database, $table, $where, [$now - self::DAY_MS, $now + self::DAY_MS]);
        if ($waiting !== null) {
            $onWaiting($waiting);
            $memo->write('', (string) $now, $anHourOn);
        }
    }

    /** @param list<int> $values @return ?WaitingLeads null: there are none */
    public static function in(Database $database, string $table, string $where, array $values = []): ?WaitingLeads
    {
        $rows = $database->query(
            'SELECT SUBSTR(reason, 1, ' . self::REASON_START . ') AS reason, COUNT(*) AS number, MIN(created_at) AS oldest'
            . " FROM $table WHERE $where GROUP BY 1",
            $values,
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
