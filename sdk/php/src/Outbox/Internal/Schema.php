<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Outbox\Dialect;

/**
 * The table, the same in all languages. The statements create what is missing and change nothing that exists.
 *
 * @internal
 */
final class Schema
{
    private const COLUMNS = [
        'idempotency_key CHAR(36) NOT NULL PRIMARY KEY',
        'capture TEXT NULL',
        'state VARCHAR(16) NOT NULL',
        'attempts INTEGER NOT NULL',
        'created_at BIGINT NOT NULL',
        'next_attempt_at BIGINT NOT NULL',
        'settled_at BIGINT NULL',
        'lead_id CHAR(36) NULL',
        'reason VARCHAR(1000) NULL',
    ];

    /** @return list<string> statements */
    public static function of(Dialect $dialect, string $table): array
    {
        $columns = self::COLUMNS;
        // PostgreSQL limits names to 63 characters.
        $index = substr($table, 0, 59) . '_due';
        if ($dialect === Dialect::MySQL) {
            // MySQL does not support CREATE INDEX IF NOT EXISTS.
            $columns[] = "INDEX $index (state, next_attempt_at)";
        }
        $list = implode(",\n  ", $columns);
        $create = "CREATE TABLE IF NOT EXISTS $table (\n  $list\n)";
        return $dialect === Dialect::MySQL
            ? ["$create ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"]
            : [$create, "CREATE INDEX IF NOT EXISTS $index ON $table (state, next_attempt_at)"];
    }
}
