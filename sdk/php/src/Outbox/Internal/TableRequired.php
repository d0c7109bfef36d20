<?php

declare(strict_types=1);

namespace LeadIntake\Outbox\Internal;

use LeadIntake\Outbox\Database;
use LeadIntake\Outbox\Dialect;
use LeadIntake\Outbox\OutboxException;

/**
 * Says what to do when a statement fails because a table is missing.
 *
 * @internal
 */
final class TableRequired implements Database
{
    /** SQLite, the SQLSTATEs of MySQL and PostgreSQL, and MySQL without them. */
    private const MISSING = "/no such table|42S02|42P01|Table '[^']+' doesn't exist/";

    public function __construct(private readonly Database $database)
    {
    }

    public function dialect(): Dialect
    {
        return $this->database->dialect();
    }

    public function execute(string $sql, #[\SensitiveParameter] array $parameters = []): int
    {
        try {
            return $this->database->execute($sql, $parameters);
        } catch (\Exception $error) {
            throw self::explained($error);
        }
    }

    public function query(string $sql, array $parameters = []): array
    {
        try {
            return $this->database->query($sql, $parameters);
        } catch (\Exception $error) {
            throw self::explained($error);
        }
    }

    public function isInTransaction(): bool
    {
        return $this->database->isInTransaction();
    }

    private static function explained(\Exception $error): \Exception
    {
        $what = 'the table of the outbox does not exist: call setUp() once, or run the statements of schema(), and compare the name of the table';
        return preg_match(self::MISSING, $error->getMessage()) ? new OutboxException($what, previous: $error) : $error;
    }
}
