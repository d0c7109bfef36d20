<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\Dialect;

/**
 * The table, the same in all languages. The statements create missing parts and change no existing ones.
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

    /** The length of the table's name within its memo's name: names are limited to 63 characters. */
    public const MEMO_NAME_LENGTH = 58;

    private const MYSQL_OPTIONS = ' ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

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
        $memo = self::memo($dialect, $table);
        return $dialect === Dialect::MySQL
            ? [$create . self::MYSQL_OPTIONS, $memo]
            : [$create, "CREATE INDEX IF NOT EXISTS $index ON $table (state, next_attempt_at)", $memo];
    }

    /** Returns the name of the memo's table, for data of the outbox other than leads. */
    public static function memoTable(string $table): string
    {
        return substr($table, 0, self::MEMO_NAME_LENGTH) . '_memo';
    }

    /** The statement that creates that table. */
    public static function memo(Dialect $dialect, string $table): string
    {
        $columns = ['name VARCHAR(32) NOT NULL PRIMARY KEY', 'value TEXT NOT NULL', 'token VARCHAR(36) NOT NULL'];
        $create = 'CREATE TABLE IF NOT EXISTS ' . self::memoTable($table) . " (\n  " . implode(",\n  ", $columns) . "\n)";
        return $dialect === Dialect::MySQL ? $create . self::MYSQL_OPTIONS : $create;
    }

    /** @param list<string> $statements */
    public static function create(Database $database, array $statements): void
    {
        foreach ($statements as $statement) {
            try {
                $database->execute($statement);
            } catch (\Exception) {
                // PostgreSQL fails concurrent creations of the same table; a second try finds it.
                $database->execute($statement);
            }
        }
    }
}
