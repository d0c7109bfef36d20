<?php

declare(strict_types=1);

namespace LeadIntake\Outbox;

/**
 * A connection to the website's database. PdoDatabase implements it for PDO; implement it for any other library. Statements
 * contain a `?` for each parameter and no other `?`.
 */
interface Database
{
    public function dialect(): Dialect;

    /**
     * @param list<int|string|null> $parameters
     * @return int the number of rows inserted, changed or deleted
     *
     * @throws \Exception when the database fails; a failure must not be silent
     */
    public function execute(string $sql, #[\SensitiveParameter] array $parameters = []): int;

    /**
     * @param list<int|string|null> $parameters
     * @return list<array<string, int|string|null>> rows by column name; numbers may be strings
     *
     * @throws \Exception when the database fails
     */
    public function query(string $sql, array $parameters = []): array;

    /** Whether a transaction is open, so that a rollback could undo a write. */
    public function isInTransaction(): bool;
}
